#include "values.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "launch_facts.hpp"
#include "reduction.hpp"

namespace deepum::simgpu {
namespace {

// A condition is of a number or two for each sample of a batch.
constexpr std::uint64_t kMostElements = 4096;

// A type of PyTorch's integers, by its size and sign; a boolean is one byte, of which any but zero
// is true.
struct Type {
  std::uint32_t bytes = 0;  // 0: none
  bool is_signed = true, is_boolean = false;
};

Type type_of_letter(char letter) {
  switch (letter) {
    case 'b':
      return {1, false, true};
    case 'h':
      return {1, false, false};
    case 'a':
      return {1, true, false};
    case 's':
      return {2, true, false};
    case 'i':
      return {4, true, false};
    case 'l':
      return {8, true, false};
    default:
      return {};
  }
}

// The first template argument of `identifier`, which is given with its "I".
Type type_behind(const Facts& f, std::string_view identifier) {
  const std::size_t at = f.kernel().find(identifier);
  return at == std::string_view::npos || at + identifier.size() >= f.kernel().size()
             ? Type{}
             : type_of_letter(f.kernel()[at + identifier.size()]);
}

// c10::ScalarType
Type type_of_scalar(std::uint8_t scalar) {
  constexpr std::string_view kLetters = "hasil";
  constexpr std::uint8_t kBoolean = 11;
  if (scalar == kBoolean) return type_of_letter('b');
  return scalar < kLetters.size() ? type_of_letter(kLetters[scalar]) : Type{};
}

std::int64_t load(const void* from, Type type) {
  std::uint64_t raw = 0;
  std::memcpy(&raw, from, type.bytes);
  if (type.is_boolean) return raw != 0 ? 1 : 0;
  const unsigned unused = 64 - 8 * type.bytes;
  return type.is_signed ? static_cast<std::int64_t>(raw << unused) >> unused
                        : static_cast<std::int64_t>(raw);
}

std::uint8_t* place(std::uint64_t address) { return reinterpret_cast<std::uint8_t*>(address); }

void store(std::uint64_t address, Type type, std::int64_t value) {
  if (type.is_boolean) value = value != 0 ? 1 : 0;
  std::memcpy(place(address), &value, type.bytes);
}

using Operation = std::int64_t (*)(std::int64_t, std::int64_t);

// An argument: elements in memory or, where there is no address, one value.
struct Argument {
  std::uint64_t address = 0;
  Type type;
  std::int64_t held = 0;
  std::int64_t at(std::uint64_t i) const {
    return address != 0 ? load(place(address + i * type.bytes), type) : held;
  }
};

std::optional<Argument> in_memory(const Pointer* p, Type type, std::uint64_t n) {
  if (p == nullptr || type.bytes == 0 || n * type.bytes > p->room) return std::nullopt;
  return Argument{p->address, type};
}

// Of the functor, the kernel's second parameter, behind `state` bytes of its own.
std::optional<Argument> held(const Facts& f, Type type, std::uint32_t state) {
  const std::uint32_t offset = std::max(state, type.bytes);
  if (type.bytes == 0 || offset + type.bytes > f.size(1)) return std::nullopt;
  return Argument{
      0, type, load(f.launch().parameters + f.launch().layout.parameters[1].offset + offset, type)};
}

Values elements(const Argument& out, std::uint64_t n, const Argument& a, const Argument& b,
                Operation operation) {
  return {{out.address, n * out.type.bytes}, [=] {
            for (std::uint64_t i = 0; i < n; ++i)
              store(out.address + i * out.type.bytes, out.type, operation(a.at(i), b.at(i)));
          }};
}

// FillFunctor<T>, of any type: the value, as large as an element.
std::optional<Values> fill(const Facts& f, std::uint64_t n) {
  const Pointer* const out = f.pointer(2);
  const std::uint32_t bytes = f.size(1);
  if (!f.named("11FillFunctorI") || out == nullptr || f.size(2) != 8 || bytes > 16 ||
      n * bytes > out->room)
    return std::nullopt;
  std::array<std::uint8_t, 16> value{};
  std::memcpy(value.data(), f.launch().parameters + f.launch().layout.parameters[1].offset, bytes);
  return Values{{out->address, n * bytes}, [at = out->address, n, bytes, value] {
                  for (std::uint64_t i = 0; i < n; ++i)
                    std::memcpy(place(at + i * bytes), value.data(), bytes);
                }};
}

// What a functor of two arguments does. state: bytes of what it holds itself, 1 if nothing.
struct Functor {
  Operation operation = nullptr;
  std::uint32_t state = 1;
  bool compares = false;
};

Functor functor_of(const Facts& f) {
  // EqOpType of CompareEQKernel.cu, OpType of CompareKernels.cu
  static constexpr Operation kEqual[] = {
      [](std::int64_t a, std::int64_t b) -> std::int64_t { return a == b; },
      [](std::int64_t a, std::int64_t b) -> std::int64_t { return a != b; }};
  static constexpr Operation kOrdered[] = {
      [](std::int64_t a, std::int64_t b) -> std::int64_t { return a >= b; },
      [](std::int64_t a, std::int64_t b) -> std::int64_t { return a > b; },
      [](std::int64_t a, std::int64_t b) -> std::int64_t { return a <= b; },
      [](std::int64_t a, std::int64_t b) -> std::int64_t { return a < b; }};
  const auto which = f.value<std::uint32_t>(1);
  if (f.named("16CompareEqFunctorI") && which < 2) return {kEqual[which], 4, true};
  if ((f.named("14CompareFunctorI") || f.named("21compare_scalar_kernelI")) && which < 4)
    return {kOrdered[which], 4, true};
  if (f.named("17BitwiseAndFunctorI"))
    return {[](std::int64_t a, std::int64_t b) { return a & b; }};
  if (f.named("16BitwiseOrFunctorI")) return {[](std::int64_t a, std::int64_t b) { return a | b; }};
  if (f.named("17BitwiseXorFunctorI"))
    return {[](std::int64_t a, std::int64_t b) { return a ^ b; }};
  return {};
}

// Of two operands (BinaryFunctor, or a functor by itself), or one is held by value: by
// AUnaryFunctor the first, by BUnaryFunctor and compare_scalar_kernel the second.
std::optional<Values> binary(const Facts& f, std::uint64_t n) {
  const Functor functor = functor_of(f);
  if (functor.operation == nullptr) return std::nullopt;
  std::string_view form;
  for (const std::string_view name : {"14CompareFunctorI", "13BinaryFunctorI", "13AUnaryFunctorI",
                                      "13BUnaryFunctorI", "21compare_scalar_kernelI"}) {
    if (f.named(name)) form = name;
  }
  const Type type = form.empty() ? Type{} : type_behind(f, form);
  const bool both = form == "13BinaryFunctorI" || form == "14CompareFunctorI",
             holds_first = form == "13AUnaryFunctorI";
  const std::uint32_t inputs = both ? 2 : 1;
  if (type.bytes == 0 || f.size(2) != 8 * (inputs + 1)) return std::nullopt;
  Type result = functor.compares ? type_of_letter('b') : type;
  std::array<Type, 2> types{type, type};
  if (f.named("LoadWithCast")) {  // {ScalarType dtypes[inputs]; ...}, StoreWithCast<1> behind it
    for (std::uint32_t i = 0; i < inputs; ++i)
      types[i] = type_of_scalar(f.value<std::uint8_t>(5, i));
    result = type_of_scalar(f.value<std::uint8_t>(6));
  }
  const std::uint32_t data = f.launch().layout.parameters[2].offset;
  const std::optional<Argument> out = in_memory(f.pointer_at(data), result, n);
  std::optional<Argument> a = in_memory(f.pointer_at(data + 8), types[0], n);
  std::optional<Argument> b =
      both ? in_memory(f.pointer_at(data + 16), types[1], n) : held(f, type, functor.state);
  if (holds_first) std::swap(a, b);
  if (!out || !a || !b) return std::nullopt;
  return elements(*out, n, *a, *b, functor.operation);
}

// ~x and logical_not(x) of booleans
std::optional<Values> negation(const Facts& f, std::uint64_t n) {
  if ((!f.named("23bitwise_not_kernel_cuda") && !f.named("23logical_not_kernel_cuda")) ||
      !f.named("EUlbE") || f.size(2) != 16)
    return std::nullopt;
  const std::uint32_t data = f.launch().layout.parameters[2].offset;
  const std::optional<Argument> out = in_memory(f.pointer_at(data), type_of_letter('b'), n);
  const std::optional<Argument> a = in_memory(f.pointer_at(data + 8), type_of_letter('b'), n);
  if (!out || !a) return std::nullopt;
  return elements(*out, n, *a, Argument{},
                  [](std::int64_t x, std::int64_t) -> std::int64_t { return x == 0; });
}

// The largest or smallest of all elements; whether all or any are true.
std::optional<Values> reduction(const Facts& f) {
  Operation operation = nullptr;
  Type type = type_behind(f, "8ReduceOpI");
  if (f.named("13MaxNanFunctorI"))
    operation = [](std::int64_t a, std::int64_t b) { return std::max(a, b); };
  if (f.named("13MinNanFunctorI"))
    operation = [](std::int64_t a, std::int64_t b) { return std::min(a, b); };
  if (type.is_boolean && f.named("15and_kernel_cuda"))
    operation = [](std::int64_t a, std::int64_t b) { return a & b; };
  if (type.is_boolean && f.named("14or_kernel_cuda"))
    operation = [](std::int64_t a, std::int64_t b) { return a | b; };
  if (operation == nullptr || type.bytes == 0) return std::nullopt;
  const std::optional<Reduction> r = reduction_of(f);
  if (!r || !r->exact || r->outputs != 1 || r->inputs == 0 || r->inputs > kMostElements ||
      r->source_element != type.bytes)
    return std::nullopt;
  const std::vector<Run> lie = runs(r->input, type.bytes);
  if (lie.size() != 1 || lie[0].bytes != r->inputs * type.bytes) return std::nullopt;  // with gaps
  const std::optional<Argument> in = in_memory(f.pointer_at(r->source), type, r->inputs);
  const std::optional<Argument> out = in_memory(f.pointer_at(r->source + 8), type, 1);
  if (!in || !out) return std::nullopt;
  return Values{{out->address, type.bytes}, [in = *in, out = *out, n = r->inputs, operation] {
                  std::int64_t result = in.at(0);
                  for (std::uint64_t i = 1; i < n; ++i) result = operation(result, in.at(i));
                  store(out.address, out.type, result);
                }};
}

}  // namespace

std::optional<Values> values_of(const LaunchView& launch, const FindAllocation& find) {
  const auto named = [&](std::string_view part) {
    return launch.kernel.find(part) != std::string_view::npos;
  };
  if (named("13reduce_kernel")) return reduction(Facts(launch, find));
  if (!named("vectorized_elementwise_kernel") && !named("27unrolled_elementwise_kernel"))
    return std::nullopt;
  const Facts facts(launch, find);
  const std::uint64_t n = facts.value<std::uint32_t>(0);
  if (n == 0 || n > kMostElements) return std::nullopt;
  if (facts.parameters() > 4 && facts.size(3) > 1) return std::nullopt;  // operands with strides
  if (std::optional<Values> made = fill(facts, n)) return made;
  if (std::optional<Values> made = binary(facts, n)) return made;
  return negation(facts, n);
}

}  // namespace deepum::simgpu
