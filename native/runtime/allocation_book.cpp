#include "allocation_book.hpp"

#include <algorithm>
#include <iterator>
#include <new>

#include "session.hpp"

namespace deepum::runtime {
namespace {

alignas(Book) unsigned char book_memory[sizeof(Book)];

template <typename Event>
std::uint64_t emit_event(Event& event, deepum_event_kind kind, std::uint32_t device,
                         std::uint8_t flags = 0) noexcept {
  event.header.words = sizeof(Event) / 8;
  event.header.kind = static_cast<std::uint8_t>(kind);
  event.header.flags = flags;
  event.header.device = device;
  return emit(&event.header);
}

std::uint64_t plain_block_bytes(std::uint32_t device) noexcept {
  return device < DEEPUM_MAX_DEVICES ? std::min(book().allocated, book().plain_block_bytes[device])
                                     : 0;
}

std::uint64_t emit_block(const AllocationRecord* record, deepum_event_kind kind,
                         std::uint64_t address, std::uint64_t bytes) noexcept {
  deepum_block_event event{};
  event.slot = slot_of(record);
  event.generation = record->generation.load(std::memory_order_relaxed);
  event.offset = address - record->base.load(std::memory_order_relaxed);
  event.bytes = bytes;
  event.allocated_bytes = book().allocated - plain_block_bytes(record->device);
  event.reserved_bytes = book().reserved;
  return emit_event(event, kind, record->device);
}

}  // namespace

std::atomic<bool> book_made{false};
std::atomic<bool> book_broken{false};
constinit thread_local bool writing_allocations = false;

Book& book() noexcept { return *std::launder(reinterpret_cast<Book*>(book_memory)); }

[[gnu::constructor(101)]] void make_book() {
  if (!book_made.exchange(true)) {
    new (book_memory) Book;
  }
}

std::map<std::uint64_t, PlainAllocation>::iterator plain_at(std::uint64_t address) noexcept {
  auto& plain = book().plain;
  const auto after = plain.upper_bound(address);
  return after != plain.begin() &&
                 address - std::prev(after)->first < std::prev(after)->second.bytes
             ? std::prev(after)
             : plain.end();
}

std::uint32_t slot_of(const AllocationRecord* record) noexcept {
  return static_cast<std::uint32_t>(record - allocation_table.records());
}

void emit_allocate(const AllocationRecord* record) noexcept {
  deepum_allocate_event event{};
  event.slot = slot_of(record);
  event.generation = record->generation.load(std::memory_order_relaxed);
  event.name = record->name.load(std::memory_order_relaxed);
  event.bytes = record->bytes.load(std::memory_order_relaxed);
  event.first_offset = record->base.load(std::memory_order_relaxed) & (kUmBlockBytes - 1);
  emit_event(event, DEEPUM_EVENT_ALLOCATE, record->device,
             record->of_program ? DEEPUM_ALLOCATION_OF_PROGRAM : 0);
}

void emit_free(std::uint32_t slot, std::uint32_t generation, std::uint32_t device) noexcept {
  deepum_free_event event{};
  event.slot = slot;
  event.generation = generation;
  emit_event(event, DEEPUM_EVENT_FREE, device);
}

// An event that was lost, or came before the session, is later than all that the daemon decides.
void emit_active(const AllocationRecord* record, std::uint64_t address,
                 std::uint64_t bytes) noexcept {
  const std::uint64_t sequence = emit_block(record, DEEPUM_EVENT_BLOCK_ACTIVE, address, bytes);
  allocation_table.set_handed_out(address, bytes, sequence ? sequence : ~std::uint64_t{0});
}

void emit_inactive(const AllocationRecord* record, std::uint64_t address,
                   std::uint64_t bytes) noexcept {
  emit_block(record, DEEPUM_EVENT_BLOCK_INACTIVE, address, bytes);
}

}  // namespace deepum::runtime
