// SPDX-License-Identifier: BSD-3-Clause
#include "native/reader.hpp"

namespace nb = nanobind;

namespace banyan::python {
namespace {

nb::object numbers(const std::uint64_t* of, int count) {
    if (!of) return nb::none();
    nb::list out;
    for (int d = 0; d < count; ++d) out.append(of[d]);
    return nb::tuple(out);
}

}  // namespace

nb::list listed(bck_contents* contents) {
    const std::unique_ptr<bck_contents, decltype(lib().bck_contents_free)> owned(contents,
                                                                                 lib().bck_contents_free);
    nb::list out;
    bck_region r{};
    for (std::size_t i = 0; i < lib().bck_contents_size(contents); ++i) {
        if (lib().bck_contents_at(contents, i, &r) != BCK_OK) continue;
        // A scalar has no extents, so there may be no array of them.
        const nb::object shape = r.ndim == 0 ? nb::object(nb::tuple()) : numbers(r.shape, r.ndim);
        out.append(nb::make_tuple(r.name, r.dtype, r.bytes, shape, numbers(r.global_shape, r.ndim),
                                  numbers(r.offset, r.ndim)));
    }
    return out;
}

answer reader::open(const std::string& dir, std::optional<std::uint64_t> step, reader& into) {
    bck_reader* found = nullptr;
    const auto said = answer_of(lib().bck_reader_open(dir.c_str(), step ? &*step : nullptr, &found));
    into.of_.reset(found);
    return said;
}

answer reader::open_job(reader& into) {
    bck_reader* found = nullptr;
    const auto said = answer_of(lib().bck_reader_open_job(nullptr, &found));
    into.of_.reset(found);
    return said;
}

}  // namespace banyan::python
