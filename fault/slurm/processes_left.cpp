// SPDX-License-Identifier: BSD-3-Clause
#include "fault/slurm/processes_left.hpp"

#include <chrono>
#include <memory>
#include <optional>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <fmt/format.h>

#include "common/clock.hpp"

namespace banyan::fault {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds connects_within(1'000), clocks_differ(100);

/// Slurm's; none when slurmctld does not tell.
std::optional<std::chrono::seconds> message_timeout() {
    slurm_conf_t* conf = nullptr;
    if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS || !conf) return std::nullopt;
    const std::unique_ptr<slurm_conf_t, void (*)(slurm_conf_t*)> owner(conf, libslurm::free_conf);
    return std::chrono::seconds(conf->msg_timeout);
}

/// slurmd listens, whether or not it answers.
bool listens(const node_status& where) {
    boost::system::error_code failed;
    asio::io_context own;
    asio::ip::tcp::resolver resolver(own);
    const auto found = resolver.resolve(where.address, std::to_string(where.port), failed);
    if (failed || found.empty()) return false;
    asio::ip::tcp::socket socket(own);
    bool connected = false;
    socket.async_connect(found.begin()->endpoint(),
                         [&](const boost::system::error_code& ec) { connected = !ec; });
    own.run_for(connects_within);
    return connected;
}

struct reply {
    int rc = SLURM_SUCCESS;
    std::optional<bool> some;  // none: the node did not say
    clock::duration took{};
};

reply ask(slurm_step_id_t step, std::string node) {
    reply out;
    const auto begun = clock::now();
    job_step_pids_response_msg_t* answer = nullptr;
    out.rc = slurm_job_step_get_pids(&step, node.data(), &answer);
    out.took = clock::now() - begun;
    const std::unique_ptr<job_step_pids_response_msg_t, void (*)(void*)> owner(
        answer, slurm_job_step_pids_response_msg_free);
    if (!answer || !answer->pid_list || slurm_list_count(answer->pid_list) == 0) return out;
    auto* each = slurm_list_iterator_create(answer->pid_list);
    if (const auto* told = static_cast<const job_step_pids_t*>(slurm_list_next(each)))
        out.some = told->pid_cnt > 0;
    slurm_list_iterator_destroy(each);
    return out;
}

}  // namespace

result<left_behind> processes_left(slurm_step_id_t step, const node_status& where) {
    const auto not_known = [&](const std::string& why) {
        return fail(errc::unavailable, fmt::format("{} could not be looked at: {}", where.name, why));
    };
    // The first time slurmd may have been away, which takes libslurm as long as one that does not answer.
    for (const bool last : {false, true}) {
        const auto got = ask(step, where.name);
        if (got.some) return *got.some ? left_behind::some : left_behind::none;
        if (got.rc == ESLURM_INVALID_JOB_ID) return left_behind::none;
        if (got.rc != SLURM_COMMUNICATIONS_CONNECTION_ERROR)
            return not_known(got.rc == SLURM_SUCCESS ? "it said nothing" : slurm_strerror(got.rc));
        const auto within = message_timeout();
        if (!within) return not_known("slurmctld does not tell Slurm's message timeout");
        if (!listens(where)) return not_known("nothing listens where its slurmd is to");
        if (last && got.took + clocks_differ >= *within) return left_behind::no_answer;
    }
    return not_known("its slurmd does not take Slurm's questions");
}

}  // namespace banyan::fault
