#include <algorithm>
#include <utility>

#include "layouts.hpp"

namespace deepum::simgpu {
namespace {

// Attributes of .nv.info records (cuobjdump -elf prints these names).
constexpr std::uint8_t kParameterInfo = 0x17;  // EIATTR_KPARAM_INFO
// Every kernel with more than 4096 bytes of parameters.
constexpr std::uint8_t kParameterInfoV2 = 0x45;
constexpr std::uint8_t kParameterBytes = 0x19;  // EIATTR_CBANK_PARAM_SIZE
// EIFMT_SVAL: the record's value is the length of what follows.
constexpr std::uint8_t kWithPayload = 4;
constexpr std::string_view kPrefix = ".nv.info.";

struct Section {
  std::uint32_t name;
  std::uint64_t offset, size;
};

Section section_at(Bytes elf, std::uint64_t header) {
  return {read_at<std::uint32_t>(elf, header), read_at<std::uint64_t>(elf, header + 24),
          read_at<std::uint64_t>(elf, header + 32)};
}

std::string_view name_at(Bytes strings, std::uint32_t offset) {
  const Bytes rest =
      slice(strings, offset, strings.size() - std::min<std::size_t>(offset, strings.size()));
  const auto end = std::find(rest.begin(), rest.end(), 0);
  if (end == rest.end()) throw Malformed("unterminated section name");
  return {reinterpret_cast<const char*>(rest.data()), static_cast<std::size_t>(end - rest.begin())};
}

ParameterLayout layout_of_section(Bytes info) {
  std::vector<std::pair<std::uint16_t, Parameter>> found;
  std::uint32_t total = 0;
  for (std::uint64_t at = 0; at + 4 <= info.size();) {
    const auto format = read_at<std::uint8_t>(info, at);
    const auto attribute = read_at<std::uint8_t>(info, at + 1);
    const auto value = read_at<std::uint16_t>(info, at + 2);
    at += 4;
    if (format != kWithPayload) {
      if (attribute == kParameterBytes) total = value;
      continue;
    }
    const Bytes payload = slice(info, at, value);
    at += value;
    if (attribute != kParameterInfo && attribute != kParameterInfoV2) continue;
    const auto ordinal = read_at<std::uint16_t>(payload, 4);
    const auto offset = read_at<std::uint16_t>(payload, 6);
    const auto word = read_at<std::uint32_t>(payload, 8);
    found.push_back(
        {ordinal, {offset, attribute == kParameterInfo ? word >> 18 : word & 0xffffff}});
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  ParameterLayout layout{{}, total};
  for (const auto& [ordinal, parameter] : found) {
    if (ordinal != layout.parameters.size()) throw Malformed("parameter ordinals have gaps");
    layout.parameters.push_back(parameter);
    layout.bytes = std::max(layout.bytes, parameter.offset + parameter.size);
  }
  return layout;
}

}  // namespace

std::uint64_t elf_image_bytes(const void* elf) {
  const Bytes header(static_cast<const std::uint8_t*>(elf), 64);
  const auto table = read_at<std::uint64_t>(header, 0x28);
  const std::uint64_t entry = read_at<std::uint16_t>(header, 0x3a),
                      count = read_at<std::uint16_t>(header, 0x3c);
  const auto segments = read_at<std::uint64_t>(header, 0x20);
  const std::uint64_t segment = read_at<std::uint16_t>(header, 0x36),
                      segment_count = read_at<std::uint16_t>(header, 0x38);
  if (table == 0 || table >= 1ull << 32 || entry < 64) throw Malformed("no section headers");
  std::uint64_t end = std::max(table + entry * count, segments + segment * segment_count);
  const Bytes headers(static_cast<const std::uint8_t*>(elf), table + entry * count);
  for (std::uint64_t i = 0; i < count; ++i) {
    // SHT_NOBITS takes no bytes.
    if (read_at<std::uint32_t>(headers, table + i * entry + 4) == 8) continue;
    const Section section = section_at(headers, table + i * entry);
    end = std::max(end, section.offset + section.size);
  }
  return end;
}

Layouts layouts_of_cubin(Bytes elf) {
  const auto table = read_at<std::uint64_t>(elf, 0x28);
  const std::uint64_t entry = read_at<std::uint16_t>(elf, 0x3a),
                      count = read_at<std::uint16_t>(elf, 0x3c);
  const std::uint64_t names = read_at<std::uint16_t>(elf, 0x3e);
  if (entry < 64 || names >= count) throw Malformed("no section headers");
  const Section strings_section = section_at(elf, table + names * entry);
  const Bytes strings = slice(elf, strings_section.offset, strings_section.size);
  Layouts layouts;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Section section = section_at(elf, table + i * entry);
    const std::string_view name = name_at(strings, section.name);
    if (!name.starts_with(kPrefix)) continue;
    layouts.emplace(name.substr(kPrefix.size()),
                    layout_of_section(slice(elf, section.offset, section.size)));
  }
  return layouts;
}

}  // namespace deepum::simgpu
