// SPDX-License-Identifier: BSD-3-Clause
//
// `banyan-topo draw`: the fabric and a job on it, for a terminal, a wall (SVG) or a browser (HTML).
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "common/file.hpp"
#include "topo/cli/cli.hpp"
#include "topo/cli/draw_text.hpp"
#include "topo/cli/output.hpp"
#include "topo/draw/html.hpp"
#include "topo/draw/job.hpp"
#include "topo/draw/svg.hpp"

namespace banyan::topo::cli {
namespace {

struct draw_options {
    fabric_input input;
    std::string format, output, title, nodes, shape, plan, color = "auto", color_by = "unit";
    std::uint32_t spares = 0;
};

result<std::optional<draw::job>> job_from(const fabric& f, const draw_options& o) {
    if (!o.plan.empty()) {
        BANYAN_TRY(const auto plan, plan_from(o.plan));
        BANYAN_TRY(const auto dims, parse_shape(plan.shape));
        BANYAN_TRY(const auto r,
                   make_request(dims, static_cast<std::uint32_t>(plan.nodes.size()), plan.ranks_per_node, 0));
        BANYAN_TRY(auto job, draw::job_of(f, r, plan.nodes, plan.spares, o.color_by));
        return std::optional(std::move(job));
    }
    if (o.nodes.empty()) {
        if (!o.shape.empty())
            return fail(errc::invalid_input, "--shape is given without the job's nodes", "add --nodes");
        return std::optional<draw::job>();
    }
    BANYAN_TRY(const auto hosts, hosts_from(f, o.nodes));
    if (o.shape.empty()) return std::optional(draw::job_of(f, hosts));
    BANYAN_TRY(const auto dims, parse_shape(o.shape));
    BANYAN_TRY(const auto r, make_request(dims, static_cast<std::uint32_t>(hosts.size()), 0, o.spares));
    BANYAN_TRY(const auto p, place(f, hosts, r));
    BANYAN_TRY(auto job, draw::job_of(f, r, p.nodes, p.spares, o.color_by));
    return std::optional(std::move(job));
}

std::string format_of(const draw_options& o) {
    if (!o.format.empty()) return o.format;
    const auto ending = std::filesystem::path(o.output).extension();
    return ending == ".svg" ? "svg" : ending == ".html" ? "html" : "text";
}

result<int> run(const draw_options& o) {
    BANYAN_TRY(const auto f, o.input.load());
    BANYAN_TRY(const auto job, job_from(f, o));
    const auto* j = job ? &*job : nullptr;
    const bool terminal = o.output.empty() && ::isatty(STDOUT_FILENO);
    const auto title = o.title.empty() && o.input.path() != "-"
                           ? std::filesystem::path(o.input.path()).stem().string()
                           : o.title;
    const auto format = format_of(o);
    std::string out;
    if (format == "svg")
        out = draw::to_svg(f, j, title);
    else if (format == "html")
        out = draw::to_html(f, j, title);
    else
        out = text_picture(f, j, o.color == "always" || (o.color == "auto" && terminal));
    BANYAN_CHECK(write_output(o.output, out));
    return fine;
}

}  // namespace

void add_draw(CLI::App& app, action& chosen) {
    const auto o = std::make_shared<draw_options>();
    auto* sub = app.add_subcommand("draw", "Draw the fabric, and a job's nodes on it");
    o->input.add_to(*sub);
    sub->add_option("--format", o->format,
                    "text for a terminal, svg for a wall, html to look around (default: as the\n"
                    "output's name ends, else text)")
        ->check(CLI::IsMember({"text", "svg", "html"}));
    sub->add_option("-o,--output", o->output, "file to replace (default: standard output)")
        ->check(named_file);
    sub->add_option("--title", o->title, "heading of the svg or html picture (default: the file's name)");
    sub->add_option("--nodes", o->nodes, "host list of a job's nodes");
    sub->add_option("--shape", o->shape, "its parallel dimensions: marks the slot of each node");
    sub->add_option("--spares", o->spares, "how many of its nodes are spares");
    sub->add_option(
        "--plan,--job", o->plan,
        "a job's plan (SPANK_BANYAN_PLAN in its prolog's environment) or what place --json prints,\n"
        "or a file with it; - is standard input");
    sub->add_option("--color-by", o->color_by,
                    "what hosts of one colour share: unit (a pipeline group; default), tp, cp, ep, pp or dp")
        ->check(CLI::IsMember({"unit", "tp", "cp", "ep", "pp", "dp"}));
    sub->add_option("--color", o->color, "colours of the text picture: auto, always or never")
        ->check(CLI::IsMember({"auto", "always", "never"}));
    sub->callback([o, &chosen] { chosen = [o] { return run(*o); }; });
}

}  // namespace banyan::topo::cli
