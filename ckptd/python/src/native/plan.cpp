// SPDX-License-Identifier: BSD-3-Clause
#include "native/plan.hpp"

#include <cstring>
#include <stdexcept>

namespace nb = nanobind;

namespace banyan::python {
namespace {

/// Names of attributes, made once.
struct names {
    nb::object data_ptr = made("data_ptr"), shape = made("shape"), dtype = made("dtype"),
               is_contiguous = made("is_contiguous"), contiguous = made("contiguous"),
               is_neg = made("is_neg"), resolve_conj = made("resolve_conj"),
               resolve_neg = made("resolve_neg"), local = made("_local_tensor"), spec = made("_spec");
    static nb::object made(const char* name) { return nb::steal(PyUnicode_InternFromString(name)); }
};
const names& name() {
    static const names* const all = new names;  // lives as long as the interpreter
    return *all;
}

/// NULL, with no Python error, where it cannot be had: the caller then walks the state anew, and says what is
/// wrong.
nb::object get(PyObject* of, const nb::object& attribute) {
    nb::object out = nb::steal(PyObject_GetAttr(of, attribute.ptr()));
    if (!out.is_valid()) PyErr_Clear();
    return out;
}

nb::object call(PyObject* of, const nb::object& method) {
    nb::object out = nb::steal(PyObject_CallMethodObjArgs(of, method.ptr(), nullptr));
    if (!out.is_valid()) PyErr_Clear();
    return out;
}

bool equal(PyObject* a, PyObject* b) {
    if (a == b) return true;
    if (Py_TYPE(a) != Py_TYPE(b)) return false;
    const int same = PyObject_RichCompareBool(a, b, Py_EQ);
    if (same < 0) PyErr_Clear();
    return same == 1;
}

/// Without gaps, and without a conjugation or a sign that is only noted: as the bytes will be read.
nb::object plain(nb::object tensor, bool is_complex) {
    const auto whole = call(tensor.ptr(), name().is_contiguous);
    if (!whole.is_valid()) return {};
    const auto negative = call(tensor.ptr(), name().is_neg);
    if (whole.ptr() == Py_True && negative.ptr() == Py_False && !is_complex) return tensor;
    for (const auto* step : {&name().contiguous, &name().resolve_conj, &name().resolve_neg}) {
        tensor = call(tensor.ptr(), *step);
        if (!tensor.is_valid()) return {};
    }
    return tensor;
}

constexpr std::size_t page = 4096;

}  // namespace

plan::plan(nb::type_object tensor, nb::object sharded)
    : tensor_(std::move(tensor)), sharded_(std::move(sharded)) {}

void plan::add_tensor(std::size_t region, nb::object dtype, nb::object shape, nb::object spec) {
    if (region >= regions_.size()) throw std::out_of_range("there is no such region");
    const bool is_complex = nb::cast<bool>(dtype.attr("is_complex"));
    nodes_.push_back({kind::tensor, dtype, std::move(shape), std::move(spec), region, is_complex});
}

std::size_t plan::add_region(std::string called, std::string dtype, std::uint64_t bytes, extents shape,
                             std::optional<extents> global, std::optional<extents> offset) {
    regions_.add(std::move(called), std::move(dtype), bytes, std::move(shape), std::move(global),
                 std::move(offset), 0);
    held_.emplace_back();
    taken_.push_back(0);
    return regions_.size() - 1;
}

void plan::add_tree(std::string called) {
    text_.assign(page, ' ');
    tree_ = add_region(std::move(called), "U8", text_.size(), {text_.size()}, {}, {});
}

void plan::set_tree(nb::bytes text) {
    // Blanks after the text are none of it. Some room is left, so that a number with a digit more changes no
    // layout.
    if (text.size() > text_.size() || text.size() * 2 + page < text_.size()) {
        text_.assign((text.size() + text.size() / 8 + page - 1) / page * page, ' ');
        regions_.resize_bytes(tree_, text_.size());
    }
    std::memcpy(text_.data(), text.c_str(), text.size());
    std::memset(text_.data() + text.size(), ' ', text_.size() - text.size());
    regions_.place(tree_, reinterpret_cast<std::uintptr_t>(text_.data()));
}

nb::object plan::match(nb::handle state) {
    cursor_ = 0;
    nb::list values;
    values_ = values;
    taken_.assign(taken_.size(), 0);
    const bool same = match_at(state.ptr()) && cursor_ == nodes_.size();
    values_.reset();
    if (!same) clear();
    return same ? nb::object(values) : nb::none();
}

nb::list plan::tensors() const {
    nb::list out;
    for (std::size_t i = 0; i < held_.size(); ++i)
        if (i != tree_) out.append(held_[i].is_valid() ? held_[i] : nb::none());
    return out;
}

void plan::clear() {
    for (auto& one : held_) one.reset();
}

bool plan::is_tensor(PyObject* at) const {
    return PyType_IsSubtype(Py_TYPE(at), reinterpret_cast<PyTypeObject*>(tensor_.ptr())) != 0;
}

bool plan::match_at(PyObject* at) {
    if (cursor_ == nodes_.size()) return false;
    const auto& n = nodes_[cursor_++];
    switch (n.what) {
        case kind::dict:
            return match_dict(at, n);
        case kind::sequence:
            return match_sequence(at, n);
        case kind::tensor:
            return match_tensor(at, n);
        case kind::value:
            break;
    }
    return !is_tensor(at) && PyList_Append(values_.ptr(), at) == 0;
}

bool plan::match_dict(PyObject* at, const node& n) {
    if (reinterpret_cast<PyObject*>(Py_TYPE(at)) != n.type.ptr() ||
        static_cast<std::size_t>(PyDict_Size(at)) != n.count)
        return false;
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t place = 0;
    for (std::size_t i = 0; i < n.count; ++i) {
        if (!PyDict_Next(at, &place, &key, &value)) return false;
        if (!equal(key, PyTuple_GetItem(n.has.ptr(), static_cast<Py_ssize_t>(i)))) return false;
        const auto held = nb::borrow(value);  // an attribute's code could take it out of the dictionary
        if (!match_at(held.ptr())) return false;
    }
    return true;
}

bool plan::match_sequence(PyObject* at, const node& n) {
    if (reinterpret_cast<PyObject*>(Py_TYPE(at)) != n.type.ptr() ||
        static_cast<std::size_t>(PySequence_Size(at)) != n.count)
        return false;
    for (std::size_t i = 0; i < n.count; ++i) {
        const auto held = nb::steal(PySequence_GetItem(at, static_cast<Py_ssize_t>(i)));
        if (!held.is_valid()) return PyErr_Clear(), false;
        if (!match_at(held.ptr())) return false;
    }
    return true;
}

bool plan::match_tensor(PyObject* at, const node& n) {
    if (!is_tensor(at)) return false;
    auto tensor = nb::borrow(at);
    const bool is_sharded =
        !sharded_.is_none() && PyType_IsSubtype(Py_TYPE(at), reinterpret_cast<PyTypeObject*>(sharded_.ptr()));
    if (is_sharded == n.spec.is_none()) return false;
    if (is_sharded) {
        const auto spec = get(at, name().spec);
        if (!spec.is_valid() || !equal(spec.ptr(), n.spec.ptr())) return false;
        tensor = get(at, name().local);
        if (!tensor.is_valid()) return false;
    }
    const auto dtype = get(tensor.ptr(), name().dtype);
    if (dtype.ptr() != n.type.ptr()) return false;
    const auto shape = get(tensor.ptr(), name().shape);
    if (!shape.is_valid() || !equal(shape.ptr(), n.has.ptr())) return false;
    tensor = plain(std::move(tensor), n.is_complex);
    if (!tensor.is_valid()) return false;
    const auto place = call(tensor.ptr(), name().data_ptr);
    if (!place.is_valid()) return false;
    const auto ptr = static_cast<std::uintptr_t>(PyLong_AsUnsignedLongLong(place.ptr()));
    if (ptr == 0 && regions_.data()[n.count].bytes != 0) return false;
    // Two names of one tensor share a region only while they are one tensor.
    if (taken_[n.count] != 0 && taken_[n.count] != ptr) return false;
    taken_[n.count] = ptr;
    if (ptr != 0) regions_.place(n.count, ptr);
    held_[n.count] = std::move(tensor);
    return true;
}

}  // namespace banyan::python
