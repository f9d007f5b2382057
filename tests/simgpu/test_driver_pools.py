"""Stream-ordered allocation, and the pools behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Script = Callable[..., Any]


def test_stream_ordered_allocation_reuses_what_was_freed_before_it(script: Script) -> None:
    script(
        """
        module, a, b, n = Module(), stream(), stream(), 4 << 20
        pool = ck(d.cuDeviceGetDefaultMemPool(0))
        attribute = lambda name: int(ck(d.cuMemPoolGetAttribute(pool, getattr(d.CUmemPool_attribute, name))))
        ck(d.cuMemPoolSetAttribute(pool, d.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, d.cuuint64_t(1 << 40)))
        gate = Gate()
        p = ck(d.cuMemAllocAsync(4 * n, a))
        gate.hold(a)
        ck(d.cuMemFreeAsync(p, a))
        q = ck(d.cuMemAllocAsync(4 * n, b))                      # another stream: it may be in use still
        assert int(q) != int(p)
        assert int(ck(d.cuMemAllocAsync(4 * n, a))) == int(p)    # the same stream: at once
        assert attribute("CU_MEMPOOL_ATTR_USED_MEM_CURRENT") == 8 * n
        gate.open()
        ck(d.cuMemFreeAsync(p, a)); ck(d.cuMemFreeAsync(q, b))
        ck(d.cuCtxSynchronize())
        assert attribute("CU_MEMPOOL_ATTR_USED_MEM_CURRENT") == 0
        assert attribute("CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT") == 8 * n
        ck(d.cuMemPoolTrimTo(pool, 0))
        assert attribute("CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT") == 0
        free, total = ck(d.cuMemGetInfo())
        assert free == total
        """
    )


def test_a_full_card_waits_for_what_is_freed_in_stream_order(script: Script) -> None:
    script(
        """
        s = stream()
        total = ck(d.cuMemGetInfo())[1]
        for _ in range(5):
            p = ck(d.cuMemAllocAsync(total // 2 + MIB, s))
            ck(d.cuMemFreeAsync(p, s))
            s = stream()
        """
    )


PLACES = """
        PINNED, MANAGED = d.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED, d.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_MANAGED
        ANYWHERE = d.CUmemLocation()
        ANYWHERE.type = d.CUmemLocationType.CU_MEM_LOCATION_TYPE_NONE
        def pool(place, kind):
            properties = d.CUmemPoolProps()
            properties.allocType, properties.location = kind, place
            return ck(d.cuMemPoolCreate(properties))
        current = lambda place, kind: int(ck(d.cuMemGetMemPool(place, kind)))
        default = lambda place, kind: int(ck(d.cuMemGetDefaultMemPool(place, kind)))
        places = [(GPU, PINNED), (CPU, PINNED), (GPU, MANAGED), (CPU, MANAGED), (ANYWHERE, MANAGED)]
"""


def test_each_place_has_a_pool_of_its_own(script: Script) -> None:
    script(
        PLACES
        + """
        assert len({default(*place) for place in places}) == len(places)
        assert default(GPU, PINNED) == int(ck(d.cuDeviceGetDefaultMemPool(0)))
        for place in places:
            assert current(*place) == default(*place)
            assert error(d.cuMemPoolDestroy(ck(d.cuMemGetDefaultMemPool(*place)))) == "INVALID_VALUE"
        assert error(d.cuMemGetDefaultMemPool(ANYWHERE, PINNED)) == "INVALID_VALUE"
        GPU.id = 7
        assert error(d.cuMemGetDefaultMemPool(GPU, PINNED)) == "INVALID_VALUE"
        """
    )


def test_a_pool_is_in_use_where_it_belongs_until_it_is_destroyed(script: Script) -> None:
    script(
        PLACES
        + """
        for place in places:
            mine = pool(*place)
            ck(d.cuMemSetMemPool(*place, mine))
            assert current(*place) == int(mine) != default(*place)
            for other in places:
                if other is not place:
                    assert error(d.cuMemSetMemPool(*other, mine)) == "INVALID_VALUE"
            ck(d.cuMemPoolDestroy(mine))
            assert current(*place) == default(*place)
            assert error(d.cuMemSetMemPool(*place, mine)) == "INVALID_VALUE"
        """
    )


def test_what_a_pool_gives_is_of_its_kind(script: Script) -> None:
    script(
        PLACES
        + """
        s = stream()
        A = d.CUpointer_attribute
        def kind(p):
            return (ck(d.cuPointerGetAttribute(A.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p)),
                    bool(ck(d.cuPointerGetAttribute(A.CU_POINTER_ATTRIBUTE_IS_MANAGED, p))))
        host, gpu = int(d.CUmemorytype.CU_MEMORYTYPE_HOST), int(d.CUmemorytype.CU_MEMORYTYPE_DEVICE)
        for place, wanted in zip(places, [(gpu, False), (host, False), (gpu, True), (gpu, True), (gpu, True)]):
            p = ck(d.cuMemAllocFromPoolAsync(4 * MIB, ck(d.cuMemGetDefaultMemPool(*place)), s))
            assert (int(kind(p)[0]), kind(p)[1]) == wanted, (wanted, kind(p))
            ck(d.cuMemFreeAsync(p, s))
        ck(d.cuStreamSynchronize(s))
        mine = pool(GPU, PINNED)
        ck(d.cuDeviceSetMemPool(0, mine))
        p = ck(d.cuMemAllocAsync(4 * MIB, s))
        used = d.CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT
        assert int(ck(d.cuMemPoolGetAttribute(mine, used))) == 4 * MIB
        ck(d.cuMemPoolDestroy(mine))                     # what it gave lives on
        put(p, np.ones(16)); assert (get(p, 16) == 1).all()
        ck(d.cuMemFree(p))
        """
    )
