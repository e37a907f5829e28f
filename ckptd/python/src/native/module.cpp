// SPDX-License-Identifier: BSD-3-Clause
//
// The native module: what is hot, and the calls of libbanyan_ckpt. What they mean stands in <banyan/ckpt.h>.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "native/plan.hpp"
#include "native/reader.hpp"

namespace nb = nanobind;
namespace py = banyan::python;
using namespace nb::literals;

namespace {

using said = std::tuple<int, std::string>;
using said_step = std::tuple<int, std::string, std::uint64_t>;
using said_restart = std::tuple<int, std::string, std::uint64_t, int>;
using said_contents = std::tuple<int, std::string, std::uint64_t, nb::list>;

said of(const py::answer& a) { return {a.code, a.error}; }

/// A call of the C library without Python's lock; its words are of the thread that made it.
template <class Call>
py::answer unlocked(Call call) {
    nb::gil_scoped_release released;
    return py::answer_of(call());
}

said init(const std::optional<std::string>& job, int rank, int world) {
    return of(unlocked([&] { return py::lib().bck_init(job ? job->c_str() : nullptr, rank, world); }));
}

said_step query() {
    std::uint64_t step = 0;
    const auto a = unlocked([&] { return py::lib().bck_restart_query(&step); });
    return {a.code, a.error, step};
}

said_contents contents() {
    bck_contents* found = nullptr;
    const auto a = unlocked([&] { return py::lib().bck_stat(&found); });
    if (a.code != 0) return {a.code, a.error, 0, nb::list()};
    const auto step = py::lib().bck_contents_step(found);
    return {0, "", step, py::listed(found)};
}

said_restart restart(const py::regions& into) {
    std::uint64_t step = 0;
    int source = 0;
    const auto a =
        unlocked([&] { return py::lib().bck_restart_into(&step, &source, into.data(), into.size()); });
    return {a.code, a.error, step, source};
}

/// `again`: regions of which one more is to come, such as an optimizer's moments.
said reserve(const py::regions& what, const std::vector<std::size_t>& again) {
    const auto all = what.with_more(again);
    return of(unlocked([&] { return py::lib().bck_reserve(all->data(), all->size()); }));
}

said save(std::uint64_t step, const py::regions& what) {
    return of(unlocked([&] { return py::lib().bck_checkpoint_of(step, what.data(), what.size()); }));
}

void add_regions(nb::module_& m) {
    nb::class_<py::regions>(m, "Regions")
        .def(nb::init<>())
        .def("add", &py::regions::add, "name"_a, "dtype"_a, "bytes"_a, "shape"_a, "global_shape"_a.none(),
             "offset"_a.none(), "ptr"_a)
        .def("place", &py::regions::place, "region"_a, "ptr"_a)
        .def("__len__", &py::regions::size);
    nb::class_<py::plan>(m, "Plan")
        .def(nb::init<nb::type_object, nb::object>(), "tensor"_a, "sharded"_a.none())
        .def("add_dict", &py::plan::add_dict)
        .def("add_sequence", &py::plan::add_sequence)
        .def("add_value", &py::plan::add_value)
        .def("add_tensor", &py::plan::add_tensor, "region"_a, "dtype"_a, "shape"_a, "spec"_a.none())
        .def("add_region", &py::plan::add_region, "name"_a, "dtype"_a, "bytes"_a, "shape"_a,
             "global_shape"_a.none(), "offset"_a.none())
        .def("add_tree", &py::plan::add_tree)
        .def("match", &py::plan::match)
        .def("tensors", &py::plan::tensors)
        .def("place", &py::plan::place, "region"_a, "ptr"_a)
        .def("clear", &py::plan::clear)
        .def("set_tree", &py::plan::set_tree)
        .def("save", [](const py::plan& p, std::uint64_t step) { return save(step, p.list()); })
        .def(
            "reserve",
            [](const py::plan& p, const std::vector<std::size_t>& again) { return reserve(p.list(), again); },
            "again"_a)
        .def(
            "begin",
            [](const py::plan& p, std::uint64_t step, std::uintptr_t stream) {
                nb::gil_scoped_release released;
                return std::make_unique<py::pending>(step, p.list(), stream);
            },
            "step"_a, "stream"_a, nb::keep_alive<0, 1>());
    nb::class_<py::pending>(m, "Pending")
        .def("end",
             [](py::pending& p) {
                 py::answer a;
                 {
                     nb::gil_scoped_release released;
                     a = p.end();
                 }
                 return of(a);
             })
        .def("begun", [](const py::pending& p) { return of(p.begun()); });
}

void add_reader(nb::module_& m) {
    nb::class_<py::reader>(m, "Reader")
        .def(nb::init<>())
        .def(
            "open",
            [](py::reader& r, const std::string& dir, std::optional<std::uint64_t> step) {
                nb::gil_scoped_release released;
                return of(py::reader::open(dir, step, r));
            },
            "dir"_a, "step"_a.none())
        .def("open_job",
             [](py::reader& r) {
                 nb::gil_scoped_release released;
                 return of(py::reader::open_job(r));
             })
        .def("step", [](const py::reader& r) { return py::lib().bck_reader_step(r.get()); })
        .def("world", [](const py::reader& r) { return py::lib().bck_reader_world(r.get()); })
        .def("contents",
             [](const py::reader& r, std::uint32_t rank) -> said_contents {
                 bck_contents* found = nullptr;
                 const auto a = unlocked([&] { return py::lib().bck_reader_stat(r.get(), rank, &found); });
                 if (a.code != 0) return {a.code, a.error, 0, nb::list()};
                 return {0, "", py::lib().bck_reader_step(r.get()), py::listed(found)};
             })
        .def("fill",
             [](const py::reader& r, std::uint32_t rank, const py::regions& into) {
                 return of(unlocked(
                     [&] { return py::lib().bck_reader_fill(r.get(), rank, into.data(), into.size()); }));
             })
        .def("close", [](py::reader& r) {
            nb::gil_scoped_release released;
            r.close();
        });
}

}  // namespace

NB_MODULE(_native, m) {
    nb::set_leak_warnings(false);  // the layouts that are known live until the interpreter's end
    m.attr("VERSION") = BANYAN_CKPT_VERSION;
    m.def("open_library", &py::open_library, "path"_a);
    m.def("init", &init, "job"_a.none(), "rank"_a, "world"_a);
    m.def("query", &query);
    m.def("contents", &contents);
    m.def("restart", &restart);
    m.def("save", &save, "step"_a, "regions"_a);
    m.def(
        "wait",
        [](std::uint64_t step, int level, int timeout_ms) {
            return of(unlocked([&] { return py::lib().bck_wait(step, level, timeout_ms); }));
        },
        "step"_a, "level"_a, "timeout_ms"_a);
    m.def(
        "milestone",
        [](std::uint64_t step, const std::string& name) {
            return of(unlocked([&] { return py::lib().bck_milestone(step, name.c_str()); }));
        },
        "step"_a, "name"_a);
    m.def("seal_requested", [] { return py::lib().bck_seal_requested() == 1; });
    m.def(
        "heartbeat", [](std::uint64_t step, std::uint32_t phase) { py::lib().bck_heartbeat(step, phase); },
        "step"_a, "phase"_a);
    m.def(
        "finalize",
        [](bool drain) { return of(unlocked([&] { return py::lib().bck_finalize(drain ? 1 : 0); })); },
        "drain"_a);
    add_regions(m);
    add_reader(m);
}
