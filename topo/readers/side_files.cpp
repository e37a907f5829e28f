// SPDX-License-Identifier: BSD-3-Clause
#include <banyan/topo/reader.hpp>
#include <fmt/format.h>

#include "common/file.hpp"

namespace banyan::topo {

result<build_options> read_side_files(const std::string& names, const std::string& site) {
    constexpr std::size_t most = std::size_t{64} << 20;
    build_options out;
    if (!names.empty()) {
        BANYAN_TRY(const auto text, read_file(names, most));
        auto read = read_name_map(text);
        if (!read)
            return fail(read.error().code, fmt::format("{}: {}", names, read.error().what),
                        read.error().hint);
        out.names = std::move(*read);
    }
    if (!site.empty()) {
        BANYAN_TRY(const auto text, read_file(site, most));
        BANYAN_TRY(out.site, read_site(text, site));
    }
    return out;
}

}  // namespace banyan::topo
