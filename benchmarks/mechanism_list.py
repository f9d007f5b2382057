"""The mechanisms that benchmarks/mechanisms.py takes out of the core, each as an edit of its
sources.
"""

from __future__ import annotations

from dataclasses import dataclass

_PLACEMENT = "native/core/placement/"
_PREDICTION = "native/core/prediction/"
_PLANNER = _PLACEMENT + "chain_planner.cpp"
_ROOM = _PLACEMENT + "pre_eviction.cpp"
_NEXT_USE = _PLACEMENT + "next_use_policy.cpp"
_LISTED = _PLACEMENT + "listed_policy.cpp"
_GROWTH = _PLACEMENT + "growth_forecast.cpp"
_PLACER = _PLACEMENT + "placer.cpp"


@dataclass(frozen=True)
class Mechanism:
    """`old` occurs once in the file. without: what the core does then. stays_for: what the table
    does not show that needs it.
    """

    name: str
    file: str
    old: str
    new: str
    without: str
    stays_for: str = ""


MECHANISMS = (
    # ---- the planner
    Mechanism(
        "evict-ahead",
        _PLANNER,
        (
            "  if (reserved == 0 || now_.launch - device.demanded_at < idle || "
            "!options_.evicts_ahead) {\n"
        ),
        "  if (true) {\n",
        "nothing leaves before content grows, while the link is idle",
    ),
    Mechanism(
        "evict-ahead-in-order",
        _PLANNER,
        "  std::ranges::stable_sort(\n"
        "      leaving_, [](const UmBlock* a, const UmBlock* b) { return a->uses.last < "
        "b->uses.last; });\n",
        "",
        "what leaves then is what is needed last, not what was used longest ago",
        "steps of equal length (decision 006)",
    ),
    Mechanism(
        "evict-ahead-left-before",
        _PLANNER,
        (
            "        if (run != nullptr && "
            "run->next[static_cast<std::size_t>(block.uses.user.part)].left) {\n"
        ),
        "        if (run != nullptr) {\n",
        "what leaves then need not have left in the same place last time",
    ),
    Mechanism(
        "reserved-room",
        _PLANNER,
        "  if (reserved == 0 || !device.residency.under_pressure() || !options_.evicts_ahead) {\n",
        "  if (true) {\n",
        "while the program waits no room is made for content to come",
    ),
    Mechanism(
        "behind-the-fullest",
        _PLANNER,
        "  if (growth_.fullest() > now_.launch && launch > growth_.fullest()) {\n",
        "  if (false) {\n",
        "launches behind the one with the most content are fetched for as well",
    ),
    Mechanism(
        "spare-room",
        _PLANNER,
        "  if (!options_.fetches_into_spare_room || !device.residency.under_pressure()) {\n",
        "  if (true) {\n",
        "nothing is fetched ahead while the host runs ahead of the GPU",
    ),
    Mechanism(
        "soon-after-wait",
        _PLANNER,
        (
            "  if (launches_since_wait_ < parameters_.soon_after_wait || "
            "options_.places_at_every_launch) {\n"
        ),
        "  if (options_.places_at_every_launch) {\n",
        "the first launches after a wait are planned like all others",
        "a program that is short of room when it goes on (tests/core/test_plan.py)",
    ),
    # ---- room
    Mechanism(
        "modest",
        _ROOM,
        "  const bool modest = knows_growth_ && !short_queue_;\n",
        "  const bool modest = false;\n",
        "what is planned may take all room, where nothing is reserved",
    ),
    Mechanism(
        "keeps-dead",
        _ROOM,
        "  if (!by_next_use_ || !knows_growth_ || device.order->dead_blocks() == 0) {\n",
        "  if (true) {\n",
        "what died last does not stay for new content",
    ),
    Mechanism(
        "early-discards",
        _ROOM,
        (
            "  if (by_next_use_ && residency.free() > kept_free && "
            "residency.frees_by_evictions_only() &&\n"
        ),
        "  if (false &&\n",
        "dead content is dropped when room is short, not before",
        "`llama-long`, free running: 1.23",
    ),
    Mechanism(
        "spare-rise",
        _ROOM,
        "  if ((much && now_.period <= settings_.launch_queue) || growth.rise() > spared ||\n",
        "  if ((much && now_.period <= settings_.launch_queue) ||\n",
        "what is fetched into spare room is fetched also while content rises",
    ),
    Mechanism(
        "wanted-batch",
        _ROOM,
        (
            "                                  ? std::max<std::uint64_t>(parameters_.batch, "
            "device.wanted)\n"
        ),
        "                                  ? parameters_.batch\n",
        "room for a launch at hand is made eight blocks at a time, not for all that it needs",
    ),
    # ---- growth
    Mechanism(
        "most-reserved",
        _GROWTH,
        "      std::max({growing.reserved, growing.most_reserved, std::int64_t{0}}));\n",
        "      std::max(growing.reserved, std::int64_t{0}));\n",
        (
            "what is reserved is what there will be more at the fullest launch, not the most "
            "until then"
        ),
        "plans that repeat from iteration to iteration (tests/core/test_plan.py)",
    ),
    Mechanism(
        "next-fullest",
        _GROWTH,
        "    return most > least && (most - least) * parameters_.sweep_share >= capacity;\n",
        "    return false;\n",
        "the fullest launch is that of the whole chain, not of the next iteration",
    ),
    # ---- eviction orders
    Mechanism(
        "cooling-down",
        _NEXT_USE,
        "  return launches > launch_queue_ ||  // it has run\n",
        "  return true || launches > launch_queue_ ||\n",
        "what was just used may leave at once",
    ),
    Mechanism(
        "unknown-by-age",
        _NEXT_USE,
        (
            "      (unknown != nullptr && !victim->residency.clean && unknown->uses.last <= "
            "victim->uses.last)) {\n"
        ),
        "      false) {\n",
        "what has no known next use leaves only where nothing else may",
    ),
    Mechanism(
        "learned-when-known",
        _NEXT_USE,
        "  learned = foreseen_ * 2 >= woken_ ? learned : 0;\n",
        "",
        "learned next uses are believed where most are unknown as well",
    ),
    Mechanism(
        "learned",
        _NEXT_USE,
        "  LaunchIndex learned = block.uses.next > launch ? block.uses.next : 0;\n",
        "  LaunchIndex learned = 0;\n",
        "only the chain says when a block is used next, not what was learned of it",
    ),
    Mechanism(
        "second-next-use",
        _NEXT_USE,
        "  block.order.afterwards = last > next ? last : 0;\n",
        "  block.order.afterwards = 0;\n",
        "of a predicted and a learned next use only the earlier one is kept",
        "plans that repeat from iteration to iteration (tests/core/test_plan.py)",
    ),
    Mechanism(
        "dying",
        _NEXT_USE,
        "    learned = block.uses.last + parameters_.dying * (learned - block.uses.last);\n",
        "",
        "content that dies before its next use counts as needed then, not far away",
    ),
    Mechanism(
        "missed",
        _PLACEMENT + "next_use_policy.hpp",
        "    return block.uses.next != 0 && block.uses.next <= now().launch;\n",
        "    return block.uses.next == 1;\n",
        "what missed a use that was learned is expected all the same",
        "`examples/train_gpt2.py --batch 15` with a profile: a step of 1.12 medians (decision 005)",
    ),
    Mechanism(
        "promised",
        _PLACEMENT + "next_use_policy.hpp",
        "    return std::max(query.for_launch, query.promised_until);\n",
        "    return query.for_launch;\n",
        "what placed launches expect may leave for a launch at hand",
    ),
    Mechanism(
        "needed-later-unexpected",
        _LISTED,
        "  found = evictable_clean_.find(parameters_.late_scan, late_enough);\n",
        "  return nullptr;\n",
        "room for content to come is made only of what a launch expects",
    ),
    # ---- moves
    Mechanism(
        "earliest-space",
        _PLACER,
        "  const Space space = device.residency.take_space(fetches && takes_earliest_space_);\n",
        "  const Space space = device.residency.take_space(false);\n",
        "what is fetched takes the space of discards before that of evictions",
    ),
    Mechanism(
        "evictions-in-order",
        _PLACEMENT + "departures.cpp",
        "  if (settings_.eviction_order == DEEPUM_EVICT_FURTHEST_NEXT_USE) {\n",
        "  if (false) {\n",
        "blocks that leave together go in the order in which they were found",
    ),
    # ---- prediction by history
    Mechanism(
        "alike-kernels",
        _PREDICTION + "history_predictor.cpp",
        (
            "    found = std::find_if(from, near, alike);\n    found = found == near ? "
            "chain.end() : found;\n"
        ),
        "    found = chain.end();\n",
        "a launch skipped to is the same execution, never the same kernel on other blocks",
    ),
    Mechanism(
        "inserted-launches",
        _PREDICTION + "history_predictor.cpp",
        "  return !agrees_better() && ++inserted_ <= parameters_.inserted;\n",
        "  return false;\n",
        "a launch that was not predicted ends the chain",
    ),
    Mechanism(
        "lasting-trust",
        _PREDICTION + "history_predictor.cpp",
        "  return history_.recall().agreement >= parameters_.known_agreement ? 2 : 0;\n",
        "  return 0;\n",
        "a chain that begins anew is trusted no further than a new one",
    ),
)
