// SPDX-License-Identifier: BSD-3-Clause
#include "hardware/verbs.hpp"

#include <algorithm>
#include <cerrno>
#include <map>

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <infiniband/verbs.h>
#include <poll.h>

#include "common/text.hpp"
#include "hardware/hca_ports.hpp"
#include "hardware/loaded.hpp"

namespace banyan::hardware {
namespace {

struct verbs_functions {
    ibv_device** (*list)(int*) = nullptr;
    void (*free_list)(ibv_device**) = nullptr;
    ibv_context* (*open)(ibv_device*) = nullptr;
    int (*close)(ibv_context*) = nullptr;
    int (*get)(ibv_context*, ibv_async_event*) = nullptr;
    void (*ack)(ibv_async_event*) = nullptr;
};

class verbs final : public verbs_events {
  public:
    verbs(const verbs_functions& f, std::filesystem::path root) : f_(f), root_(std::move(root)) {}
    ~verbs() override {
        for (const auto& [name, context] : open_) f_.close(context);
    }

    std::vector<hca_event> rescan() override;
    std::vector<hca_event> wait(std::chrono::milliseconds timeout) override;
    std::size_t devices() const override { return open_.size(); }
    const std::set<std::string>& blind() const override { return blind_; }

  private:
    void open(ibv_device* one, std::vector<hca_event>& out);
    /// False where the device is of no use any more.
    bool take(const std::string& name, ibv_context* context, std::vector<hca_event>& out);
    void close(const std::string& name);

    verbs_functions f_;
    std::filesystem::path root_;
    std::map<std::string, ibv_context*> open_;
    std::set<std::string> blind_;
};

std::vector<hca_event> verbs::rescan() {
    std::vector<hca_event> out;
    blind_.clear();
    int count = 0;
    ibv_device** all = f_.list(&count);
    if (!all) {
        // Without the kernel's module there is no HCA that anything could use.
        if (errno != ENOSYS && errno != ENOENT)
            blind_.insert(fail_errno("cannot list the HCAs", errno).error().text());
        return out;
    }
    std::set<std::string> there;
    for (int n = 0; n < count; ++n) there.insert(all[n]->name);
    std::vector<std::string> gone;
    for (const auto& [name, context] : open_)
        if (!there.contains(name)) gone.push_back(name);
    for (const auto& name : gone) close(name);
    for (int n = 0; n < count; ++n)
        if (!open_.contains(all[n]->name)) open(all[n], out);
    f_.free_list(all);
    return out;
}

void verbs::open(ibv_device* one, std::vector<hca_event>& out) {
    const std::string name = one->name;
    ibv_context* context = f_.open(one);
    if (!context) {
        blind_.insert(fail_errno("cannot open " + name, errno).error().text());
        return;
    }
    const int flags = ::fcntl(context->async_fd, F_GETFL);
    if (flags < 0 || ::fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        blind_.insert(fail_errno("cannot wait for events of " + name, errno).error().text());
        f_.close(context);
        return;
    }
    open_[name] = context;
    const auto ports = read_ports(root_);
    if (!ports) return;  // the events come all the same
    for (const auto& p : *ports) {
        const auto port = parse_number(p.port, UINT8_MAX);
        if (p.device != name || !port || !p.error.empty()) continue;
        const bool up = p.state.starts_with("4:");
        out.push_back({name, pci_address(root_, name), static_cast<std::uint32_t>(*port),
                       up ? hca_news::is_up : hca_news::is_down});
    }
}

void verbs::close(const std::string& name) {
    f_.close(open_.at(name));
    open_.erase(name);
}

bool verbs::take(const std::string& name, ibv_context* context, std::vector<hca_event>& out) {
    // A device that tells without end must not keep the others waiting.
    constexpr int most_at_once = 64;
    for (int n = 0; n < most_at_once; ++n) {
        ibv_async_event event{};
        errno = 0;
        if (f_.get(context, &event) != 0) return errno == EAGAIN || errno == EINTR;
        const auto type = event.event_type;
        const auto port = static_cast<std::uint32_t>(event.element.port_num);
        f_.ack(&event);
        const auto tell = [&](std::uint32_t of, hca_news news) {
            out.push_back({name, pci_address(root_, name), of, news});
        };
        if (type == IBV_EVENT_PORT_ERR) tell(port, hca_news::port_down);
        if (type == IBV_EVENT_PORT_ACTIVE) tell(port, hca_news::port_up);
        if (type == IBV_EVENT_DEVICE_FATAL) {
            tell(0, hca_news::device_fatal);
            return false;
        }
    }
    return true;
}

std::vector<hca_event> verbs::wait(std::chrono::milliseconds timeout) {
    std::vector<hca_event> out;
    std::vector<pollfd> fds;
    std::vector<std::string> names;
    for (const auto& [name, context] : open_) {
        fds.push_back({context->async_fd, POLLIN, 0});
        names.push_back(name);
    }
    if (::poll(fds.data(), fds.size(), static_cast<int>(timeout.count())) <= 0) return out;
    for (std::size_t n = 0; n < fds.size(); ++n)
        if (fds[n].revents != 0 && !take(names[n], open_.at(names[n]), out)) close(names[n]);
    return out;
}

}  // namespace

result<std::unique_ptr<verbs_events>> open_verbs(const std::string& library,
                                                 const std::filesystem::path& root) {
    // Never closed: its providers are not made for that.
    void* loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!loaded)
        return fail(errc::not_found, fmt::format("{} is not on this node", library),
                    "it comes with the HCAs' drivers");
    verbs_functions f;
    if (!find_function(loaded, "ibv_get_device_list", f.list) ||
        !find_function(loaded, "ibv_free_device_list", f.free_list) ||
        !find_function(loaded, "ibv_open_device", f.open) ||
        !find_function(loaded, "ibv_close_device", f.close) ||
        !find_function(loaded, "ibv_get_async_event", f.get) ||
        !find_function(loaded, "ibv_ack_async_event", f.ack))
        return fail(errc::not_found, fmt::format("{} lacks functions that it has had ever since", library));
    return std::make_unique<verbs>(f, root);
}

}  // namespace banyan::hardware
