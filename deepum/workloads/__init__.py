"""Named workloads: models and what is done with them, by name and numbers, as `gpt2-xl:batch=5`.

The list is plain data, so that it can be shown without PyTorch; each entry names the function that
builds it. Models are written here in plain torch.nn, after the architectures' papers and the public
implementations named with each, and run on any device of PyTorch: on the simulated GPU as well as
under deepum.capture, which is how tests compare the two.
"""

from deepum.workloads.registry import WORKLOADS, Job, Named, Request, parse

__all__ = ["WORKLOADS", "Job", "Named", "Request", "parse"]
