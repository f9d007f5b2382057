// Reads the functions of an object's file, and of copies of it that are cut off or damaged.
// Arguments: the file, a seed, the number of copies, a file to write them to. Prints how many
// functions the whole one has, and the most that a copy has.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "elf_functions.hpp"

using deepum::simgpu::cudart::ElfFile;

static std::size_t functions(const char* path) {
  const ElfFile file(path);
  (void)file.needs("libc.so");
  const auto found =
      file.own_functions([](std::string_view name) { return name.starts_with("part_"); });
  for (const auto& function : found) (void)file.code(function.value, 5);
  return found.size();
}

int main(int, char** arguments) {
  std::ifstream input(arguments[1], std::ios::binary);
  const std::vector<char> whole{std::istreambuf_iterator<char>(input), {}};
  std::mt19937 random(static_cast<unsigned>(std::atoi(arguments[2])));
  Elf64_Ehdr header;
  std::memcpy(&header, whole.data(), sizeof header);
  std::size_t most = 0;
  for (int copy = 0; copy < std::atoi(arguments[3]); ++copy) {
    std::vector<char> damaged = whole;
    if (copy % 3 == 0) damaged.resize(random() % damaged.size());
    for (unsigned change = random() % 6; change > 0; --change) {  // in its headers, mostly
      const std::size_t places[] = {
          random() % sizeof header,
          header.e_phoff + random() % (sizeof(Elf64_Phdr) * header.e_phnum),
          header.e_shoff + random() % (sizeof(Elf64_Shdr) * header.e_shnum),
          random() % whole.size()};
      const std::size_t place = places[random() % std::size(places)];
      const std::uint64_t value = random() % 3 == 0 ? random() : ~std::uint64_t{random() % 100};
      if (place + sizeof value <= damaged.size())
        std::memcpy(&damaged[place], &value, random() % 2 == 0 ? 1 : sizeof value);
    }
    std::ofstream(arguments[4], std::ios::binary)
        .write(damaged.data(), static_cast<std::streamsize>(damaged.size()));
    most = std::max(most, functions(arguments[4]));
  }
  std::printf("%zu %zu\n", functions(arguments[1]), most);
}
