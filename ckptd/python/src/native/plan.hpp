// SPDX-License-Identifier: BSD-3-Clause
//
// The layout of a state that was walked once: its containers, keys and tensors, and the regions made of them.
// A save of the same state compares it with the plan in one pass, and takes its tensors' addresses on the
// way.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include "native/pending.hpp"
#include "native/regions.hpp"

namespace banyan::python {

class plan {
  public:
    /// `tensor`: torch.Tensor. `sharded`: torch's DTensor, or None where torch has not loaded it.
    plan(nanobind::type_object tensor, nanobind::object sharded);

    // The walk, in its order: a container, then what is in it.
    void add_dict(nanobind::type_object cls, nanobind::tuple keys) {
        nodes_.push_back({kind::dict, std::move(cls), keys, {}, keys.size()});
    }
    void add_sequence(nanobind::type_object cls, std::size_t count) {
        nodes_.push_back({kind::sequence, std::move(cls), {}, {}, count});
    }
    void add_value() { nodes_.push_back({kind::value, {}, {}, {}, 0}); }
    /// A tensor in region `region`, whose local part has this dtype and shape. `spec`: a DTensor's, else
    /// None.
    void add_tensor(std::size_t region, nanobind::object dtype, nanobind::object shape,
                    nanobind::object spec);
    std::size_t add_region(std::string name, std::string dtype, std::uint64_t bytes, extents shape,
                           std::optional<extents> global, std::optional<extents> offset);
    /// The region, a row of bytes, that save() fills with what set_tree() was given; the last one.
    void add_tree(std::string name);

    /// Compares `state` with the plan, and takes the tensors' addresses: the values that are no tensors, in
    /// their order, or None where anything differs.
    nanobind::object match(nanobind::handle state);
    /// The local tensors of the last match, by region; they are kept until clear().
    nanobind::list tensors() const;
    void place(std::size_t region, std::uintptr_t ptr) { regions_.place(region, ptr); }
    void clear();
    /// What goes into the tree's region: padded, so that the layout seldom changes.
    void set_tree(nanobind::bytes text);

    const regions& list() const { return regions_; }

  private:
    enum class kind { dict, sequence, value, tensor };
    struct node {
        kind what;
        nanobind::object type;  ///< of a container; a tensor's dtype
        nanobind::object has;   ///< keys; a tensor's shape
        nanobind::object spec;
        std::size_t count = 0;    ///< in a container; a tensor's region
        bool is_complex = false;  ///< such a tensor may be conjugated only by a note
    };
    bool match_at(PyObject* at);
    bool match_dict(PyObject* at, const node& n);
    bool match_sequence(PyObject* at, const node& n);
    bool match_tensor(PyObject* at, const node& n);
    bool is_tensor(PyObject* at) const;

    nanobind::object tensor_, sharded_;
    std::vector<node> nodes_;
    regions regions_;
    std::vector<nanobind::object> held_;  ///< by region: what was matched last
    std::vector<std::uintptr_t> taken_;   ///< by region: its address in this match, 0 = none yet
    std::size_t cursor_ = 0;
    nanobind::object values_;
    std::size_t tree_ = 0;
    std::vector<char> text_;
};

}  // namespace banyan::python
