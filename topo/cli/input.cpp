// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <ctime>

#include <banyan/topo/reader.hpp>
#include <banyan/topo/snapshot.hpp>
#include <fmt/format.h>

#include "common/file.hpp"
#include "common/text.hpp"
#include "topo/cli/cli.hpp"

namespace banyan::topo::cli {

result<fabric> load_fabric(const std::string& path) {
    BANYAN_TRY(auto text, read_file(path == "-" ? "/dev/stdin" : path, max_dump_bytes));
    const auto in_file = [&](const error& e) {
        return fail(e.code, fmt::format("{}: {}", path, e.what), e.hint);
    };
    if (is_snapshot(text)) {
        auto loaded = decode_snapshot(text);
        if (!loaded) return in_file(loaded.error());
        return loaded;
    }
    const auto dump = read_ibnetdiscover(std::move(text));
    if (!dump) return in_file(dump.error());
    build_options options;
    options.created_unix_s = std::time(nullptr);
    return build_fabric(*dump, options);
}

result<std::vector<std::uint32_t>> hosts_from(const fabric& f, const std::string& hostlist) {
    std::vector<std::uint32_t> out;
    if (hostlist.empty()) {
        for (std::uint32_t i = 0; i < f.hosts.size(); ++i) out.push_back(i);
        return out;
    }
    BANYAN_TRY(const auto names, expand_hostlist(hostlist));
    for (const auto& name : names) {
        const auto host = find_host(f, name);
        if (host == none)
            return fail(errc::not_found, fmt::format("{} is not on the fabric", name),
                        "banyan-topo show lists the hosts");
        out.push_back(host);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

}  // namespace banyan::topo::cli
