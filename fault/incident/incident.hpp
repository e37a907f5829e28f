// SPDX-License-Identifier: BSD-3-Clause
//
// An incident: one thing that broke, however many lines speak of it. Object, cause, evidence, what was done
// and when.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/result.hpp"
#include "fault/neighbours.hpp"

namespace banyan::fault {

enum class object_kind : std::uint8_t { gpu, hca, link, sw, node, manager };
enum class severity : std::uint8_t { notice, warning, error, fatal };
enum class incident_state : std::uint8_t { open, acting, done, held };

struct end_point {
    std::string node;  ///< switch or host name
    std::string name;  ///< the whole node description
    std::uint32_t port = 0;
    std::uint64_t guid = 0;
    bool operator==(const end_point&) const = default;
};

struct object {
    object_kind kind = object_kind::node;
    std::string node;  ///< host; the switch's name for a switch; "LID 3 (0x...)" for the subnet manager
    int gpu = -1;
    std::string bdf, uuid, serial;
    std::string hca;              ///< "mlx5_1"
    std::vector<end_point> ends;  ///< link: two; hca: its own and the switch's
    std::string device;           ///< a part of the node that speaks for itself: see symptom_lines.hpp
    std::uint64_t mbps = 0;       ///< of a link of the fabric: what it carried before; 0: not known
    std::string text() const;     ///< "n03 GPU 3 (0000:5d:00)"
};

/// Which end of an NVLink that went down the culprit's line speaks of, as its registers tell.
enum class link_end : std::uint8_t {
    none,     ///< no such line
    peer,     ///< the other end went down first
    unclear,  ///< it follows from another fault, where there is one
    own,
};

/// Of a node on which nothing answers.
inline constexpr std::string_view silent_reason = "node-silent";
/// Of a node that does not end the last run of a job, which waits for that.
inline constexpr std::string_view stuck_reason = "node-stuck";
/// Of the subnet manager: it is gone, or another took over.
inline constexpr std::string_view manager_reason = "subnet-manager";
/// Of the switches of an NVLink domain that several nodes share.
inline constexpr std::string_view nvlink_domain_reason = "nvlink-domain";

/// How `closed_by` begins where the fabric itself shows that it is over.
inline constexpr std::string_view fabric_closes = "the fabric: ";
inline constexpr std::string_view fabric_is_back = "the fabric: it is back";
/// What breaks again within this time of being back is the same incident.
inline constexpr std::int64_t flaps_within_ms = 10 * 60'000;
/// The whole of it, where the subnet manager told of a port whose link was there at the next look.
inline constexpr std::string_view fabric_was_back = "the fabric: it was back at once";
/// Not over: what is told of it stands in that incident.
inline constexpr std::string_view fabric_larger = "the fabric: part of a larger fault";
inline constexpr std::string_view fabric_manager_answers = "the fabric: the subnet manager answers again";
/// The `boot_id` of what a look at the fabric found.
inline constexpr std::string_view fabric_boot = "fabric";
/// The `boot_id` of what UFM told.
inline constexpr std::string_view told_by_ufm = "ufm";

/// Of a host, and of one of its HCAs, that left the fabric.
inline constexpr std::string_view host_lost_reason = "host-lost", host_link_reason = "host-link";

struct action_record {
    std::string what;    ///< seal, node_down, node_drain, job, requeue, start_now ...
    std::string target;  ///< node or job
    std::int64_t at_ms = 0;
    std::string result;
};

struct evidence_line {
    std::int64_t at_ms = 0;
    std::string source;  ///< node, or "opensm"
    std::string text;
    std::uint64_t repeats = 0;
    bool decides = false;  ///< the judgement rests on it: others make room for it
};

/// A job that is said to go on, until it trains: as it was when its node was taken out.
struct followed_job {
    std::uint32_t job = 0, restarts = 0;
    bool may_requeue = false;
    std::int64_t since_ms = 0;
    std::string script;              ///< the node of its batch script
    std::vector<std::string> nodes;  ///< kept as a hostlist
    /// Its training step was ended, and its nodes stay: the newest of its steps then.
    std::optional<std::uint32_t> ended_step{};
    bool operator==(const followed_job&) const = default;
};

/// The ranks of a job on the culprit's node, before anything was done.
struct job_ranks {
    std::uint32_t job = 0, restarts = 0;  ///< which run of it
    std::uint32_t step = 0, of = 0;       ///< of: all ranks of that step
    std::string ranks;                    ///< "0-3,8"; which of them use a GPU is not known
    std::string unknown;                  ///< why there are none here; empty: they are known
    bool operator==(const job_ranks&) const = default;
};
/// {0, 1, 2, 3, 8} -> "0-3,8". Rising.
std::string ranges_text(const std::vector<std::uint32_t>& numbers);

/// A job was hit somewhere before it was elsewhere.
struct job_hit {
    std::string node;
    std::int64_t at_ms = 0;  ///< by the node's own clock
    std::uint32_t step = 0;  ///< of an end
    bool accuses = false;    ///< the node, where jobs of others are hit there, too
    bool operator==(const job_hit&) const = default;
};

struct incident {
    static constexpr std::size_t max_evidence = 64, max_seen = 256, max_ranked = 16, max_ports = 64,
                                 max_firsts = 64, max_shown = 256, max_actions = 512;

    std::uint64_t number = 0;
    struct object object;
    std::string reason;  ///< gpu-xid-79, fabric-link ...: names the page in docs/runbook
    std::string cause;   ///< "Xid 79 GPU 3 fell off the bus"
    enum severity severity = severity::notice;
    incident_state state = incident_state::open;
    std::string advice;        ///< what the policy decided, in words
    std::string rule;          ///< the policy's rule that decided
    std::uint8_t decided = 0;  ///< the step_kind that it asked for
    std::vector<std::uint64_t> jobs;
    std::vector<job_ranks> ranks;        ///< of those jobs that were looked at, at most max_ranked
    std::uint32_t accused = 0;           ///< the job whose process the culprit's line names; 0: not known
    std::vector<job_hit> firsts;         ///< of what is told of a job: see job_rules.hpp
    std::vector<followed_job> followed;  ///< goes on over a restart of the controller
    std::vector<action_record> actions;
    std::vector<evidence_line> evidence;
    std::uint64_t flaps = 0;         ///< how often it was back, and broke again
    bool back = false;               ///< of an HCA's port: it is up again, by the newest line
    std::vector<std::string> ports;  ///< of an HCA, those that are down, as far as they are known by name
    std::uint64_t lines = 0;         ///< all of them, those not kept included
    std::string boot_id;
    std::map<std::uint32_t, std::uint64_t> codes;  ///< Xid -> lines
    std::optional<std::uint32_t> verdict;          ///< of Xid 154
    bool verdict_on_culprit = false;               ///< one on the culprit asks for a reset or a reboot
    std::optional<std::uint32_t> xid, sxid;        ///< of the culprit's line, if it was one
    std::string swept;                             ///< what a sweep of the node found; empty: none was made
    std::string symptom;                           ///< the same, in the catalogue's words
    link_end fallen = link_end::none;              ///< the same: of a link that went down
    std::optional<neighbours> place;               ///< of the culprit, where it is known
    std::string nvlink_domain;           ///< of the culprit's node: "UUID.clique"; see nvlink_rules.hpp
    std::vector<std::string> shown;      ///< nodes of it whose GPUs told of their NVLinks
    bool own_fault = false;              ///< the culprit's line is of itself, and not of an NVLink
    bool begun = false;                  ///< something was about to be done for it, whatever came of that
    bool kept_from_sweep = false;        ///< its reason is that of a node which the sweep had drained
    std::vector<neighbours::card> lost;  ///< of a PCIe switch: those below it that were lost
    std::vector<std::int64_t> seen;      ///< when the culprit's fault was, lines close to each other once
    std::uint8_t root_precedence = 0;
    std::int64_t line_ms = 0, incident_ms = 0, sealed_ms = 0, node_out_ms = 0, last_ms = 0, closed_ms = 0;
    /// When the newest of the lines that count was written, by the controller's clock; 0: not known.
    std::int64_t written_ms = 0;
    std::int64_t held_ms = 0;   ///< since when something waits that could not be done; 0 = nothing does
    std::int64_t avoid_ms = 0;  ///< since when new jobs are kept off its cable; 0 = they are not
    std::string closed_by;
    std::string approved_by;   ///< who wants it done past the limits; empty again when it was
    std::string cancelled_by;  ///< who wants that it is not done

    std::string id() const;
    void add_evidence(evidence_line line);
    /// Where there are very many already, what came to nothing is not kept.
    void add_action(action_record a, bool done);
    /// The culprit's fault was seen: again, when it was not within the `window_ms` before.
    void add_seen(std::int64_t at_ms, std::int64_t window_ms);
    const action_record* find_action(const std::string& what, const std::string& target) const;
};

/// When what it rests on was last told: by the controller's clock where that is known, else by the node's.
std::int64_t newest_line_ms(const incident& i);

/// It left the fabric because Slurm restarts its host, or has it without power: no fault.
inline bool is_planned(const incident& i) {
    return i.boot_id == fabric_boot && i.severity == severity::notice &&
           (i.reason == host_lost_reason || i.reason == host_link_reason);
}

/// "f00012" -> 12.
std::optional<std::uint64_t> number_of(std::string_view id);
/// Its culprit is the switches of an NVLink domain: no node is.
bool is_an_nvlink_domain(const incident& i);
std::string_view name_of(object_kind k);
std::string_view name_of(severity s);
std::string_view name_of(incident_state s);
std::string_view name_of(link_end e);

nlohmann::json to_json(const incident& i, bool with_evidence = true);
/// What every user may read of it: neither the lines of logs nor the steps of others' jobs.
nlohmann::json users_json(const incident& i);
/// Reads what to_json wrote (from the history); checked, since a file can be damaged.
result<incident> incident_from(const nlohmann::json& j);

}  // namespace banyan::fault
