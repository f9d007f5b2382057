// Work records (um_model/work_records.h) of a buffer, one after the other.
#pragma once

#include <cstdint>
#include <span>

#include "um_model/work_records.h"

namespace deepum::simulate {

class WorkReader {
 public:
  explicit WorkReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  // The record at hand; null at the end, and before one that is malformed.
  const deepum_work* record() const {
    if (bytes_.size() - done_ < sizeof(deepum_work)) {
      return nullptr;
    }
    const auto* const record = reinterpret_cast<const deepum_work*>(bytes_.data() + done_);
    const std::size_t bytes = std::size_t{record->words} * 8;
    const std::size_t least =
        sizeof(deepum_work) + std::size_t{record->accesses} * sizeof(deepum_work_access);
    return bytes < least || bytes > bytes_.size() - done_ ? nullptr : record;
  }
  static std::span<const deepum_work_access> accesses(const deepum_work& record) {
    return {reinterpret_cast<const deepum_work_access*>(&record + 1), record.accesses};
  }
  void next() { done_ += std::size_t{record()->words} * 8; }
  std::size_t done() const { return done_; }  // bytes
  bool at_end() const { return done_ == bytes_.size(); }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t done_ = 0;
};

}  // namespace deepum::simulate
