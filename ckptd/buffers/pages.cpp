// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/buffers/pages.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/file.hpp"
#include "common/text.hpp"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace banyan::ckpt {
namespace {

constexpr auto pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/";
constexpr auto transparent_dir = "/sys/kernel/mm/transparent_hugepage/";
constexpr std::uint64_t most_waste = 32;  // one in so many bytes

std::string kernel_word(const std::string& path) {
    const auto text = read_file(path, 4096);
    return text ? std::string(trim(*text)) : "";
}

std::string chosen_word(const std::string& path) {
    const auto text = kernel_word(path);
    const auto from = text.find('['), to = text.find(']');
    return from == std::string::npos || to == std::string::npos ? "" : text.substr(from + 1, to - from - 1);
}

// Which nobody has and nobody was promised. Nothing: it could not be seen.
std::optional<std::uint64_t> free_in_pool() {
    const auto free = parse_number(kernel_word(std::string(pool) + "free_hugepages"));
    const auto promised = parse_number(kernel_word(std::string(pool) + "resv_hugepages"));
    if (!free || !promised) return std::nullopt;
    return *free - std::min(*free, *promised);
}

// Each mapping's address and its bytes in transparent pages, in the order of addresses, while `next` wants
// more.
void for_each_mapping(const std::function<bool(std::uintptr_t, std::uint64_t)>& next) {
    std::ifstream in("/proc/self/smaps");
    constexpr std::string_view key = "ShmemPmdMapped:";
    std::uintptr_t at = 0;
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with(key)) {
            const auto rest = trim(std::string_view(line).substr(key.size()));
            if (!next(at, parse_number(rest.substr(0, rest.find(' '))).value_or(0) << 10)) return;
        } else if (std::isdigit(static_cast<unsigned char>(line[0])) != 0 ||
                   (line[0] >= 'a' &&
                    line[0] <= 'f')) {  // a mapping; the names of its fields are in capitals
            at = std::strtoul(line.c_str(), nullptr, 16);
        }
    }
}

result<unique_fd> new_file(const std::string& name, unsigned flags) {
    unique_fd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING | flags));
    if (!fd) return fail_errno(fmt::format("cannot make {}", name), errno);
    // Its mode is 0777 by default: whoever gets at /proc/PID/fd could open it.
    if (::fchmod(fd.get(), 0600) != 0)
        return fail_errno(fmt::format("cannot close {} to others", name), errno);
    return fd;
}

result<void> seal_size(int fd, const std::string& name) {
    if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return fail_errno(fmt::format("cannot seal the size of {}", name), errno);
    return {};
}

// While the kernel fills or empties a part of this process's mappings nobody in it can map anything, and the
// daemon's one thread has to, for each session. So whoever waits for that has a turn after each piece.
template <class Work>
void in_pieces(std::span<std::byte> memory, const Work& work) {
    constexpr std::size_t at_once = huge_page_bytes;
    for (std::size_t at = 0; at < memory.size(); at += at_once) {
        const auto piece = memory.subspan(at, std::min(at_once, memory.size() - at));
        if (work(piece) != 0) return;
        std::this_thread::yield();
    }
}

// Pages that have been written need not be filled by those who map them. A full node is an error here, not a
// SIGBUS later.
result<void> allocate(int fd, std::uint64_t bytes, const std::string& name) {
    static constexpr std::array<std::byte, 128 * 1024> zeros{};
    for (std::uint64_t at = 0; at < bytes;) {
        const auto piece = std::min<std::uint64_t>(zeros.size(), bytes - at);
        const auto done = ::pwrite(fd, zeros.data(), piece, static_cast<off_t>(at));
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0)
            return fail_errno(fmt::format("cannot allocate {} for {}", format_bytes(bytes), name),
                              done < 0 ? errno : ENOSPC);
        at += static_cast<std::uint64_t>(done);
    }
    return {};
}

// By page faults, each of which the kernel serves without the lock over all mappings (Linux 6.4).
void touch(std::span<const std::byte> memory, std::size_t each) {
    for (std::size_t at = 0; at < memory.size(); at += each)
        static_cast<void>(*static_cast<const volatile std::byte*>(memory.data() + at));
}

std::span<std::byte> all_of(const mapping& m) { return {m.data(), m.size()}; }

result<mapping> map_whole(int fd, std::uint64_t bytes) {
    const std::array each{bytes};
    BANYAN_TRY(auto space, joined_space({}, each));
    if (::mmap(space.data(), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
        return fail_errno("cannot map memory", errno);
    return space;
}

bool is_reserved(int fd) {
    struct statfs fs {};
    return ::fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC;
}

}  // namespace

void page_choice::tell(const std::string& cause, const std::string& text) {
    const std::scoped_lock held(lock_);
    if (say && told_.insert(cause).second) say(text);
}

void page_choice::add(const bytes_by_kind& bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes_[i] += bytes[i];
}

void page_choice::remove(const bytes_by_kind& bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes_[i] -= bytes[i];
}

void memory_file::see_transparent(std::uint64_t bytes) {
    auto& ordinary = pages[static_cast<std::size_t>(page_kind::ordinary)];
    const auto huge = std::min(bytes, ordinary);
    ordinary -= huge;
    pages[static_cast<std::size_t>(page_kind::transparent)] += huge;
}

std::expected<memory_file, no_such_pages> file_of_reserved(const std::string& name, std::uint64_t bytes) {
    const auto none = [](const error& e) {
        return std::unexpected(no_such_pages{"the kernel refuses them", ": " + e.text()});
    };
    const auto too_few = [&] {
        const auto free = free_in_pool();
        return std::unexpected(no_such_pages{
            "there are too few", fmt::format(": {} of 2 MiB are needed, and {}", bytes / huge_page_bytes,
                                             free ? fmt::format("{} are free", *free)
                                                  : std::string("how many are free is not known"))});
    };
    memory_file out;
    auto fd = new_file(name, MFD_HUGETLB | MFD_HUGE_2MB);
    if (!fd) return none(fd.error());
    if (::ftruncate(fd->get(), static_cast<off_t>(bytes)) != 0)
        return none(fail_errno(fmt::format("cannot make {}", name), errno).error());
    // To map it is to be promised all pages, or none.
    auto map = map_whole(fd->get(), bytes);
    if (!map) return too_few();
    // What is still in the way, such as the control group's limit, is an error here and a SIGBUS in a page
    // fault.
    int done = 0;
    do done = ::fallocate(fd->get(), 0, 0, static_cast<off_t>(bytes));
    while (done != 0 && errno == EINTR);
    if (done != 0) return too_few();
    if (auto sealed = seal_size(fd->get(), name); !sealed) return none(sealed.error());
    touch(all_of(*map), huge_page_bytes);
    out.fd = std::move(*fd);
    out.map = std::move(*map);
    out.pages[static_cast<std::size_t>(page_kind::reserved)] = bytes;
    return out;
}

result<memory_file> file_of_ordinary(const std::string& name, std::uint64_t bytes, bool transparent) {
    memory_file out;
    BANYAN_TRY(out.fd, new_file(name, 0));
    // Huge pages come by page faults in a mapping that asks for them; fallocate() gives ordinary ones. Here a
    // fault that finds no memory is an error of madvise().
    if (transparent && ::ftruncate(out.fd.get(), static_cast<off_t>(bytes)) == 0) {
        BANYAN_TRY(out.map, map_whole(out.fd.get(), bytes));
        if (::madvise(out.map.data(), bytes, MADV_HUGEPAGE) == 0)
            in_pieces(all_of(out.map),
                      [](auto piece) { return ::madvise(piece.data(), piece.size(), MADV_POPULATE_WRITE); });
        if (const int e = ::posix_fallocate(out.fd.get(), 0, static_cast<off_t>(bytes)); e != 0)
            return fail_errno(fmt::format("cannot allocate {} for {}", format_bytes(bytes), name), e);
    } else {
        BANYAN_CHECK(allocate(out.fd.get(), bytes, name));
        BANYAN_TRY(out.map, map_whole(out.fd.get(), bytes));
        touch(all_of(out.map), least_page_bytes);
    }
    BANYAN_CHECK(seal_size(out.fd.get(), name));
    out.pages[static_cast<std::size_t>(page_kind::ordinary)] = bytes;
    if (transparent) out.see_transparent(transparent_in_mapping(out.map.data()));
    return out;
}

result<memory_file> file_of(unique_fd fd) {
    struct stat st {};
    if (::fstat(fd.get(), &st) != 0) return fail_errno("cannot look at memory that was kept", errno);
    const auto bytes = static_cast<std::uint64_t>(st.st_size);
    memory_file out;
    const bool reserved = is_reserved(fd.get());
    // Not populated: of what many jobs have that takes long, and nobody is let in meanwhile.
    BANYAN_TRY(out.map, map_whole(fd.get(), bytes));
    out.fd = std::move(fd);
    out.pages[static_cast<std::size_t>(reserved ? page_kind::reserved : page_kind::ordinary)] = bytes;
    return out;
}

void unmap(mapping memory) {
    in_pieces(all_of(memory),
              [](auto piece) { return ::madvise(piece.data(), piece.size(), MADV_DONTNEED); });
}

std::expected<void, no_such_pages> transparent_pages() {
    const std::string dir = transparent_dir;
    const auto none = [](const std::string& file, const std::string& word) {
        return std::unexpected(
            no_such_pages{fmt::format("{} is \"{}\"", file, word.empty() ? "not there" : word), ""});
    };
    if (const auto size = kernel_word(dir + "hpage_pmd_size"); size != std::to_string(huge_page_bytes))
        return none(dir + "hpage_pmd_size", size);
    const auto gives = [](const std::string& word) {
        return word == "always" || word == "within_size" || word == "advise" || word == "force";
    };
    const auto all = dir + "shmem_enabled", one = dir + "hugepages-2048kB/shmem_enabled";
    const auto of_all = chosen_word(all), of_one = chosen_word(one);  // the latter since Linux 6.10
    if (of_all == "deny") return none(all, of_all);
    if (gives(of_one) || of_all == "force") return {};
    if (!of_one.empty() && of_one != "inherit") return none(one, of_one);
    if (!gives(of_all)) return none(all, of_all);
    return {};
}

std::map<std::uintptr_t, std::uint64_t> transparent_mappings() {
    std::map<std::uintptr_t, std::uint64_t> out;
    for_each_mapping([&](std::uintptr_t at, std::uint64_t bytes) {
        if (bytes != 0) out[at] = bytes;
        return true;
    });
    return out;
}

void map_huge_pages(std::span<std::byte> memory) {
    for (std::size_t at = 0; at < memory.size(); at += huge_page_bytes)
        if (::madvise(memory.data() + at, page_bytes, MADV_POPULATE_READ) != 0) return;  // Linux before 5.14
}

std::uint64_t transparent_in_mapping(const void* at) {
    const auto wanted = reinterpret_cast<std::uintptr_t>(at);
    std::uint64_t out = 0;
    for_each_mapping([&](std::uintptr_t begin, std::uint64_t bytes) {
        if (begin == wanted) out = bytes;
        return begin < wanted;
    });
    return out;
}

std::optional<std::uint64_t> pages_of_pool() {
    const auto has = parse_number(kernel_word(std::string(pool) + "nr_hugepages"));
    const auto may_add = parse_number(kernel_word(std::string(pool) + "nr_overcommit_hugepages"));
    if (!has || !may_add) return std::nullopt;
    return *has + *may_add;
}

joined_shape reserved_shape(const joined_shape& plain) {
    return {plain.header == 0 ? 0 : huge_page_bytes, plain.buffers};
}

std::uint64_t bytes_of(const joined_shape& shape, std::uint64_t each) {
    return shape.header + shape.buffers * each;
}

bool is_worth_reserved(const joined_shape& plain, std::uint64_t each) {
    const auto ordinary = bytes_of(plain, round_up(each, page_bytes));
    const auto huge = bytes_of(reserved_shape(plain), round_up(each, huge_page_bytes));
    return huge - ordinary <= ordinary / most_waste;
}

}  // namespace banyan::ckpt
