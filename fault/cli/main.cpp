// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-fault: what broke, why banyan did what it did, and the way back. This file reads the command line.
//
// Exit codes: 0 done; 1 the controller does not answer, or a policy is wrong (policy check); 2 wrong use or
// configuration; 3 there is no such thing, or it is refused.
#include <cstdint>
#include <cstdio>

#include "common/cli_words.hpp"
#include "common/config.hpp"
#include "fault/cli/commands.hpp"

int main(int argc, char** argv) {
    using namespace banyan::fault;
    CLI::App app{"banyan-fault: incidents of this cluster"};
    app.footer(
        "Exit codes: 0 done, 1 the controller does not answer or the policy is wrong, 2 wrong use or "
        "configuration, 3 not found or "
        "refused.");
    std::string config_path = banyan::default_config_path().string(), id, node, file = "-", format = "guess";
    bool json = false, follow = false;
    banyan::usual_words(app, "banyan-fault");
    app.require_subcommand(1);
    app.fallthrough();
    app.add_option("--config", config_path,
                   "banyan.conf (default: $BANYAN_CONF, else /etc/banyan/banyan.conf)");
    auto* incidents = app.add_subcommand("incidents", "list incidents, the newest last");
    incidents->add_flag("--json", json, "one JSON object an incident, in a list (with --follow: one a line)");
    incidents->add_flag("--follow", follow, "go on and print what changes");
    incident_filter wanted;
    std::string since, until;
    incidents->add_option("--node", wanted.nodes,
                          "only of these nodes, such as n[01-04]; of a link, either end");
    incidents->add_option("--reason", wanted.reason, "only with this reason, such as gpu-reset");
    incidents->add_option("--state", wanted.state,
                          "only those that are open (not closed), acting, done, held or closed");
    incidents->add_option("--job", wanted.job, "only those that the job with this number had");
    incidents->add_option("--since", since,
                          "only those from then on: 2h (ago), 2026-11-23, 2026-11-23T13:45");
    incidents->add_option("--until", until, "only those until then");
    auto* explain = app.add_subcommand("explain", "everything about one incident");
    explain->add_option("ID", id, "such as f00012")->required();
    explain->add_flag("--json", json, "as JSON");
    auto* status = app.add_subcommand("status", "the controller's state");
    status->add_flag("--json", json, "as JSON");
    auto* agents = app.add_subcommand("agents", "the agents and when they were last heard");
    agents->add_flag("--json", json, "as JSON");
    bool nvlink_domains = false;
    agents->add_flag("--nvlink-domains", nvlink_domains,
                     "lines of a node and its NVLink domain, for [nvlink] of the fabric's site file");
    auto* close = app.add_subcommand("close", "close an incident; the node stays as it is");
    close->add_option("ID", id, "such as f00012")->required();
    auto* approve =
        app.add_subcommand("approve", "take the node of a held-back incident out now, past the limits");
    approve->add_option("ID", id, "such as f00012")->required();
    auto* retry = app.add_subcommand("retry", "ask the limits again now about a held-back incident");
    retry->add_option("ID", id, "such as f00012")->required();
    auto* cancel = app.add_subcommand("cancel", "leave the node of a held-back incident in");
    cancel->add_option("ID", id, "such as f00012")->required();
    auto* resume = app.add_subcommand("resume", "return a node that banyan took out");
    resume->add_option("NODE", node, "its name in Slurm")->required();
    auto* breaker = app.add_subcommand("reset-breaker", "let the controller take nodes out again");
    auto* parse = app.add_subcommand("parse", "the events in a log, one JSON object a line");
    parse->add_option("FILE", file, "the log (default: -, the standard input)");
    parse->add_option("--format", format,
                      "guess, kmsg, syslog, json, opensm, ufm, fabric-manager or nccl (default: guess)");
    std::uint32_t branch = 0;
    parse
        ->add_option("--driver-branch", branch,
                     "the GPU driver's, such as 570, until the log itself tells it (default: not known)")
        ->check(CLI::Range(0, 9'999));
    auto* rules = app.add_subcommand("policy", "what is done about which incident; asks no controller");
    rules->require_subcommand(1);
    policy_call call;
    const auto with_policy = [&](const char* name, const char* about) {
        auto* sub = rules->add_subcommand(name, about);
        sub->add_flag("--json", call.json, "as JSON");
        return sub;
    };
    const char* const which = "the policy (default: the one that banyan.conf names, else the shipped one)";
    auto* check_rules = with_policy("check", "say all that is wrong with a policy; exit 1 when anything is");
    check_rules->add_option("FILE", call.policy, which);
    auto* explain_rules = with_policy("explain", "the rules, and what each is for");
    explain_rules->add_option("FILE", call.policy, which);
    auto* test_rules = with_policy("test", "what a policy would do about a log, or about incidents as JSON");
    test_rules->add_option("--policy", call.policy, which);
    test_rules->add_option("LOG", file, "the log, or the incidents (default: -, the standard input)");
    test_rules->add_option("--format", format, "as of parse (default: guess)");
    auto* check = app.add_subcommand("check-config", "say whether the configuration is right");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? 0 : 2;
    }
    if (parse->parsed()) return parse_log(file, format, branch);
    call.config = config_path;
    if (check_rules->parsed()) return policy_check(call);
    if (explain_rules->parsed()) return policy_explain(call);
    if (test_rules->parsed()) return policy_test(call, file, format);
    client asking(config_path);
    if (check->parsed()) return asking.check_config();
    if (incidents->parsed()) return asking.incidents(wanted, since, until, json, follow);
    if (explain->parsed()) return asking.explain(id, json);
    if (status->parsed()) return asking.status(json);
    if (agents->parsed()) return nvlink_domains ? asking.nvlink_domains() : asking.agents(json);
    if (close->parsed()) return asking.close(id);
    if (approve->parsed()) return asking.rule_on("approve", id);
    if (retry->parsed()) return asking.rule_on("retry", id);
    if (cancel->parsed()) return asking.rule_on("cancel", id);
    if (resume->parsed()) return asking.resume(node);
    if (breaker->parsed()) return asking.reset_breaker();
    return 2;
}
