#include "figures.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <variant>

#include "figure_names.hpp"
#include "machine_of.hpp"

namespace deepum::um_model {
namespace {

struct Figure {
  std::string_view name;
  std::variant<double deepum_machine::*, std::int32_t deepum_machine::*,
               std::uint64_t deepum_machine::*>
      member;
};

#define DEEPUM_FIGURE(name) Figure{#name, &deepum_machine::name},
constexpr Figure kFigures[] = {DEEPUM_FIGURES(DEEPUM_FIGURE)};
#undef DEEPUM_FIGURE

template <typename T>
bool read(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

// One "name=value".
bool change(deepum_machine& machine, std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return false;
  }
  const auto* const known =
      std::find_if(std::begin(kFigures), std::end(kFigures),
                   [&](const Figure& figure) { return figure.name == text.substr(0, equals); });
  return known != std::end(kFigures) &&
         std::visit([&](auto member) { return read(text.substr(equals + 1), machine.*member); },
                    known->member);
}

}  // namespace

std::optional<Machine> with_figures(const Machine& preset, std::string_view figures) {
  deepum_machine machine;
  if (deepum_machine_find(std::string(preset.name).c_str(), &machine) != 0) {
    return std::nullopt;
  }
  while (!figures.empty()) {
    const std::size_t comma = std::min(figures.find(','), figures.size());
    if (!change(machine, figures.substr(0, comma))) {
      return std::nullopt;
    }
    figures.remove_prefix(std::min(comma + 1, figures.size()));
  }
  std::optional<Machine> made = machine_of(machine);
  if (made) {
    made->name = preset.name;
    made->description = preset.description;
    made->gpu_name = preset.gpu_name;
  }
  return made;
}

}  // namespace deepum::um_model
