// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/store/owner.hpp"

#include <algorithm>
#include <cerrno>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "ckptd/store/leftovers.hpp"
#include "ckptd/store/user_dir.hpp"
#include "common/addresses.hpp"
#include "common/file.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::string_view owner_prefix = "OWNER.";
constexpr std::size_t record_bytes = 1024;  // one write, one size: a beat never makes the file longer
constexpr std::uint64_t most_beat_ms = 60'000;
constexpr std::size_t most_nodes = 4096, most_file = std::size_t{1} << 20;
constexpr std::size_t most_name = 255;

std::string owner_name(std::uint64_t number) { return fmt::format("{}{}", owner_prefix, number); }

std::string to_text(const claim& c, bool released) {
    const nlohmann::ordered_json out{
        {"format", "banyan-owner 1"}, {"job", c.job},         {"generation", c.generation}, {"node", c.node},
        {"beat_ms", c.beat_ms},       {"released", released}, {"ending", c.ending},         {"beat", c.beat}};
    auto text = out.dump();
    if (text.size() < record_bytes) text.resize(record_bytes - 1, ' ');
    return text + "\n";
}

// Names and addresses in turn. The longest list that a reader takes is cut off behind the last whole node.
std::string nodes_text(const std::map<std::string, std::string>& nodes) {
    auto out = nlohmann::json::array();
    std::size_t bytes = 0;
    for (const auto& [name, addr] : nodes) {
        bytes += name.size() + addr.size() + 6;  // with quotes and commas
        if (out.size() >= 2 * most_nodes || bytes > most_file / 2) break;
        out.push_back(name);
        out.push_back(addr);
    }
    return nlohmann::json{{"nodes", out}}.dump() + "\n";
}

std::map<std::string, std::string> parse_nodes(const std::string& text) {
    std::map<std::string, std::string> out;
    const auto json = nlohmann::json::parse(text, nullptr, false);
    const auto list = json_fields(json).texts("nodes", 2 * most_nodes, most_name);
    if (!list || list->size() % 2 != 0) return out;
    for (std::size_t i = 0; i < list->size(); i += 2) {
        const auto &name = (*list)[i], &addr = (*list)[i + 1];
        if (is_printable(name) && !name.empty() && is_numeric_address(addr)) out.try_emplace(name, addr);
    }
    return out;
}

result<owner_record> parse_owner(const std::string& text) {
    const auto end_of_record = text.find('\n');
    const auto json = nlohmann::json::parse(text.substr(0, end_of_record), nullptr, false);
    const json_fields in(json);
    owner_record out;
    BANYAN_TRY(out.job, in.number("job"));
    BANYAN_TRY(out.generation, in.number("generation"));
    BANYAN_TRY(out.node, in.text("node", 255));
    BANYAN_TRY(out.beat_ms, in.number("beat_ms", most_beat_ms));
    BANYAN_TRY(out.released, in.flag("released"));
    out.ending = in.flag("ending").value_or(false);  // not there in claims of older daemons
    BANYAN_TRY(out.beat, in.number("beat"));
    out.node = printable(out.node);
    if (end_of_record != std::string::npos) out.nodes = parse_nodes(text.substr(end_of_record + 1));
    return out;
}

// The numbers of all claims in `top`, ascending.
result<std::vector<std::uint64_t>> claims_in(int top, const std::string& dir) {
    std::vector<std::uint64_t> out;
    const auto look = [&](const char* entry) {
        const std::string_view name(entry);
        if (!name.starts_with(owner_prefix)) return true;
        if (const auto n = parse_number(name.substr(owner_prefix.size()), UINT64_MAX - 1)) out.push_back(*n);
        return true;
    };
    BANYAN_CHECK(for_each_name(top, dir, look));
    std::sort(out.begin(), out.end());
    return out;
}

// Our own change to the directory makes a network file system ask the server what else is in it.
void refresh(int top, const std::string& dir) {
    const auto probe = unused_name("banyan-probe");
    if (create_file(top, probe, O_WRONLY, {}, dir)) ::unlinkat(top, probe.c_str(), 0);
}

result<void> put_text(int fd, const std::string& text, const std::string& shown, std::uint64_t at = 0) {
    BANYAN_CHECK(write_all(fd, std::as_bytes(std::span(text)), at, shown));
    if (::fsync(fd) != 0) return fail_errno(fmt::format("cannot sync {}", shown), errno);
    return {};
}

std::unexpected<error> lost(const claim& c) {
    return fail(errc::conflict, fmt::format("the checkpoint directory {} is no longer job {}'s of generation "
                                            "{:x}: somebody else has taken it over",
                                            c.dir, c.job, c.generation));
}

// The next number is looked for first: whoever takes over makes it before ours goes, so that when it is
// missing because it has gone in its turn, ours has gone too.
result<void> check_in(int top, const claim& c) {
    refresh(top, c.dir);
    struct stat st {};
    if (::fstatat(top, owner_name(c.number + 1).c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) return lost(c);
    if (errno != ENOENT) return fail_errno(fmt::format("cannot look into {}", c.dir), errno);
    if (::fstatat(top, owner_name(c.number).c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) return {};
    if (errno != ENOENT) return fail_errno(fmt::format("cannot look into {}", c.dir), errno);
    return lost(c);
}

result<unique_fd> open_ours(const claim& c) {
    BANYAN_TRY(const auto top, open_directory(c.dir));
    BANYAN_CHECK(check_in(top.get(), c));
    const auto name = owner_name(c.number);
    unique_fd fd(::openat(top.get(), name.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd && errno == ENOENT) return lost(c);
    if (!fd) return fail_errno(fmt::format("cannot open {}/{}", c.dir, name), errno);
    return fd;
}

result<void> rewrite(const storage_user& user, const claim& c, bool released) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    BANYAN_TRY(const auto fd, open_ours(c));
    return put_text(fd.get(), to_text(c, released), c.dir + "/" + owner_name(c.number));
}

}  // namespace

result<std::optional<owner_record>> read_owner(const storage_user& user, const std::string& dir) {
    using found = std::optional<owner_record>;
    BANYAN_TRY(const auto identity, as_user::take(user));
    const auto top = open_directory(dir);
    if (!top && top.error().code == errc::not_found) return found();
    if (!top) return std::unexpected(top.error());
    refresh(top->get(), dir);
    BANYAN_TRY(const auto numbers, claims_in(top->get(), dir));
    if (numbers.empty()) return found();
    owner_record out;
    const auto name = owner_name(numbers.back());
    const auto text = read_small(top->get(), name, dir + "/" + name, most_file);
    // Taken over just now: the next look finds the successor.
    if (!text && text.error().code != errc::not_found) return std::unexpected(text.error());
    if (text)
        if (auto record = parse_owner(*text)) out = std::move(*record);
    out.number = numbers.back();
    return found(std::move(out));
}

claim_verdict judge_owner(const std::optional<owner_record>& owner, std::uint64_t job,
                          std::uint64_t generation) {
    if (!owner) return claim_verdict::take;
    if (owner->job == job)
        return owner->generation > generation ? claim_verdict::fenced : claim_verdict::take;
    return owner->released ? claim_verdict::take : claim_verdict::watch;
}

result<claim> take_claim(const storage_user& user, const claim& wanted,
                         const std::optional<owner_record>& seen) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    BANYAN_TRY(const auto top, make_directory(wanted.dir));
    claim c = wanted;
    c.number = seen ? seen->number + 1 : 1;
    c.beat = 0;
    const auto name = owner_name(c.number);
    const auto shown = c.dir + "/" + name;
    const auto fd = create_file(top.get(), name, O_WRONLY, modes_in(top.get()), shown);
    if (!fd) {
        struct stat st {};
        if (::fstatat(top.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0)
            return fail(errc::conflict, fmt::format("somebody else takes {} over", c.dir));
        return fail(fd.error().code, fmt::format("the checkpoint directory {} is not writable for uid {}: {}",
                                                 c.dir, user.uid, fd.error().what));
    }
    auto made = put_text(fd->get(), to_text(c, false) + nodes_text(c.nodes), shown);
    if (made) made = sync_folder(top.get(), c.dir);
    const auto numbers = claims_in(top.get(), c.dir);
    if (made && !numbers) made = std::unexpected(numbers.error());
    // What we had seen was no longer the newest, or its user has taken ours away.
    if (made && (numbers->empty() || numbers->back() != c.number))
        made = fail(errc::conflict, fmt::format("somebody else has taken {} over", c.dir));
    if (!made) {
        ::unlinkat(top.get(), name.c_str(), 0);
        return std::unexpected(made.error());
    }
    // The oldest first: see check_in().
    for (const auto n : *numbers)
        if (n < c.number) ::unlinkat(top.get(), owner_name(n).c_str(), 0);
    BANYAN_CHECK(put_away_flushes(top.get(), c.dir));
    return c;
}

result<void> check_claim(const storage_user& user, const claim& c) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    BANYAN_TRY(const auto top, open_directory(c.dir));
    return check_in(top.get(), c);
}

result<void> rewrite_nodes(const storage_user& user, const claim& c) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    BANYAN_TRY(const auto fd, open_ours(c));
    struct stat st {};
    if (::fstat(fd.get(), &st) != 0) return fail_errno(fmt::format("cannot look at {}", c.dir), errno);
    const auto at = to_text(c, false).size();
    auto text = nodes_text(c.nodes);
    const auto length = static_cast<std::uint64_t>(st.st_size);
    if (at + text.size() > length || length > most_file) return {};  // its user has written something else
    // Blanks to the end of what was there: the file's length stays.
    text.insert(text.size() - 1, length - at - text.size(), ' ');
    return put_text(fd.get(), text, c.dir + "/" + owner_name(c.number), at);
}

result<void> beat_claim(const storage_user& user, claim& c) {
    ++c.beat;
    return rewrite(user, c, false);
}

result<void> release_claim(const storage_user& user, const claim& c) { return rewrite(user, c, true); }

}  // namespace banyan::ckpt
