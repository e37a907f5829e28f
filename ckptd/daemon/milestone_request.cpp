// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "ckptd/daemon/rank_requests.hpp"
#include "ckptd/store/milestones.hpp"
#include "common/json_fields.hpp"

namespace banyan::ckpt {

// The name comes first: it holds for whichever step reaches storage, also where this daemon ends meanwhile.
task<answer_meta> rank_requests::on_milestone(client_ptr client, json meta) {
    const auto s = client->session_of_rank();
    if (!s) co_return fail(errc::conflict, "no rank is attached on this connection");
    BANYAN_CO_TRY(const auto step, json_fields(meta).number("step", max_step));
    BANYAN_CO_TRY(const auto name, json_fields(meta).text("name", 64));
    if (s->request.flush == 0 || s->request.dir.empty())
        co_return fail(errc::invalid_input,
                       "the job flushes no steps to a checkpoint directory: none can stay",
                       "--train-ckpt=dir=/path,flush=50");
    const auto work = [user = s->user, dir = s->request.dir, name, step] {
        return set_milestone(user, dir, name, step);
    };
    const auto named = co_await core_.storage.run(s->user.uid, work);
    if (!named) co_return std::unexpected(named.error());
    to_.flushes.store_soon(s, step);
    co_return json::object();
}

}  // namespace banyan::ckpt
