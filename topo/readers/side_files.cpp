// SPDX-License-Identifier: BSD-3-Clause
#include <banyan/topo/reader.hpp>
#include <fmt/format.h>

#include "common/file.hpp"

namespace banyan::topo {
namespace {

constexpr std::size_t most = std::size_t{64} << 20;

/// What `read` makes of a file, whose name an error of it has.
template <class Read>
auto read_side_file(const std::string& path, Read read) -> decltype(read(std::string_view())) {
    BANYAN_TRY(const auto text, read_file(path, most));
    auto out = read(text);
    if (!out) return fail(out.error().code, fmt::format("{}: {}", path, out.error().what), out.error().hint);
    return out;
}

}  // namespace

result<build_options> read_side_files(const std::string& names, const std::string& site) {
    build_options out;
    if (!names.empty()) {
        BANYAN_TRY(out.names, read_side_file(names, read_name_map));
    }
    if (!site.empty()) {
        BANYAN_TRY(const auto text, read_file(site, most));
        BANYAN_TRY(out.site, read_site(text, site));
        if (const auto& file = out.site.nvlink_domain_file; !file.empty()) {
            BANYAN_TRY(out.site.nvlink_domain_of, read_side_file(file, read_nvlink_domains));
        }
    }
    return out;
}

}  // namespace banyan::topo
