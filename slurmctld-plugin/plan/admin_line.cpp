// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/plan/admin_line.hpp"

#include "train/admin_comment.hpp"

namespace banyan::slurm {
namespace {

constexpr std::string_view mark = " | ";

std::string_view text_of(const char* comment) { return comment ? comment : ""; }

void replace(char*& comment, std::string_view line, std::string_view theirs) {
    std::string text(line);
    if (!line.empty() && !theirs.empty()) text += mark;
    text += theirs;
    xfree(comment);
    comment = xstrdup(text.c_str());
}

}  // namespace

admin_text split_admin_comment(std::string_view text) {
    if (!train::is_admin_comment(text)) return {{}, text};
    const auto at = text.find(mark);
    if (at == std::string_view::npos) return {text, {}};
    return {text.substr(0, at), text.substr(at + mark.size())};
}

void set_admin_line(job_record_t& job, std::string_view line) {
    const std::string before(text_of(job.admin_comment));
    const auto now = split_admin_comment(before);
    if (line.empty() && now.line.empty()) return;
    replace(job.admin_comment, line, now.theirs);
}

void keep_admin_line(job_desc_msg_t& change, const job_record_t& job) {
    if (!change.admin_comment) return;
    const auto line = split_admin_comment(text_of(job.admin_comment)).line;
    if (line.empty()) return;
    const std::string typed(text_of(change.admin_comment));
    replace(change.admin_comment, line, split_admin_comment(typed).theirs);
}

}  // namespace banyan::slurm
