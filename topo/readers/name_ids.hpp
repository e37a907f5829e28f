// SPDX-License-Identifier: BSD-3-Clause
//
// Ids of nodes that have no GUID, made of their names: the same on every day.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include <banyan/topo/fabric.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

namespace banyan::topo {

/// FNV-1a of the name; of two names with one hash the later gets the next number that is free.
class name_ids {
  public:
    guid make(node_kind kind, std::string_view name) {
        guid id = 0xcbf29ce484222325 ^ static_cast<guid>(kind);
        for (const char c : name) id = (id ^ static_cast<unsigned char>(c)) * 0x100000001b3;
        while (id == 0 || !taken_.insert(id).second) ++id;
        return id;
    }

  private:
    boost::unordered_flat_set<guid> taken_;
};

/// Names that a dump points into.
class name_store {
  public:
    std::string_view keep(std::string name) { return names_->emplace_back(std::move(name)); }
    std::shared_ptr<const std::deque<std::string>> all() const { return names_; }

  private:
    std::shared_ptr<std::deque<std::string>> names_ = std::make_shared<std::deque<std::string>>();
};

}  // namespace banyan::topo
