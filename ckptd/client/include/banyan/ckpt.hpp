// SPDX-License-Identifier: BSD-3-Clause
//
// libbanyan_ckpt for C++20 and later: the functions of <banyan/ckpt.h> with spans, ownership, and results
// that say what is missing. Nothing throws but what the standard library does when memory runs out.
//
//     bck::session session;                                    // job, rank, world from the environment
//     session.protect("weights", std::span(weights));
//     std::uint64_t step = 0;
//     const auto found = session.restart();                    // waits until all ranks can have their state
//     if (!found) stop(found.error().text);                    // not known to be none: do not begin anew
//     if (*found) step = (*found)->step + 1;
//     for (; step < steps; ++step) {
//         train();
//         session.checkpoint(step);
//     }
//     session.finalize(true);
//
// The library has one session in a process: make a second bck::session only when the first one is gone.
#ifndef BANYAN_CKPT_HPP
#define BANYAN_CKPT_HPP

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#include <version>

#include <banyan/ckpt.h>
#if defined(__STDCPP_FLOAT16_T__) || defined(__STDCPP_BFLOAT16_T__)
#include <stdfloat>
#endif
#ifdef __cpp_lib_expected
#include <expected>
#endif

namespace bck {

// Units of both kinds may be linked together: what differs between them has different names.
#ifdef __cpp_lib_expected
inline namespace with_expected {
#else
inline namespace without_expected {
#endif

/// One of the BCK_E_ codes, and bck_error()'s words for it.
struct problem {
    int code = BCK_OK;
    std::string text;
};

#ifdef __cpp_lib_expected
template <class T>
using result = std::expected<T, problem>;
using failure = std::unexpected<problem>;
#else
/// What std::expected is from C++23 on, as far as it is used here.
struct failure {
    problem value;
    explicit failure(problem e) : value(std::move(e)) {}
};
template <class T>
class [[nodiscard]] result {
    using kept = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

  public:
    result() requires std::is_void_v<T> : state_(std::in_place_index<0>) {}
    result(kept value) requires(!std::is_void_v<T>) : state_(std::in_place_index<0>, std::move(value)) {}
    result(failure f) : state_(std::in_place_index<1>, std::move(f.value)) {}
    bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }
    kept& operator*() noexcept { return *std::get_if<0>(&state_); }
    const kept& operator*() const noexcept { return *std::get_if<0>(&state_); }
    kept* operator->() noexcept { return std::get_if<0>(&state_); }
    const kept* operator->() const noexcept { return std::get_if<0>(&state_); }
    problem& error() noexcept { return *std::get_if<1>(&state_); }
    const problem& error() const noexcept { return *std::get_if<1>(&state_); }

  private:
    std::variant<kept, problem> state_;
};
#endif

/// How safe a step is, and where a rank's shard was found: as in <banyan/ckpt.h>.
enum class level : int {
    sealed = BCK_SEALED,
    memory = BCK_MEMORY,
    replicated = BCK_REPLICATED,
    durable = BCK_DURABLE
};
enum class source : int {
    none = BCK_FROM_NONE,
    local = BCK_FROM_LOCAL,
    peer = BCK_FROM_PEER,
    storage = BCK_FROM_STORAGE
};

namespace detail {

inline result<void> checked(int code) {
    if (code == BCK_OK) return {};
    return failure(problem{code, bck_error()});
}

template <class T>
constexpr const char* dtype_of() {
    using type = std::remove_cv_t<T>;
    static_assert(!std::is_const_v<T>, "bck_restart writes to the region");
    static_assert(std::is_arithmetic_v<type> || std::is_same_v<type, std::byte>,
                  "numbers and bytes have a dtype; for other types use protect_bytes");
    static_assert(sizeof(type) <= 8, "no dtype is that large");
    if constexpr (std::is_same_v<type, bool>) return "BOOL";
#ifdef __STDCPP_FLOAT16_T__
    if constexpr (std::is_same_v<type, std::float16_t>) return "F16";
#endif
#ifdef __STDCPP_BFLOAT16_T__
    if constexpr (std::is_same_v<type, std::bfloat16_t>) return "BF16";
#endif
    if constexpr (std::is_floating_point_v<type>) return sizeof(type) == 4 ? "F32" : "F64";
    constexpr std::size_t size = sizeof(type) == 1 ? 0 : sizeof(type) == 2 ? 1 : sizeof(type) == 4 ? 2 : 3;
    constexpr std::array<const char*, 4> with{"I8", "I16", "I32", "I64"}, without{"U8", "U16", "U32", "U64"};
    return std::is_signed_v<type> ? with[size] : without[size];
}

struct free_contents {
    void operator()(bck_contents* c) const noexcept { bck_contents_free(c); }
};

}  // namespace detail

/// One region of a checkpoint. A view: it lives as long as its `contents`.
struct region {
    std::string_view name, dtype;
    std::span<const std::uint64_t> shape;
    std::uint64_t bytes = 0;
    std::span<const std::uint64_t> global_shape, offset;  ///< of a piece that is no scalar; else empty
    bool is_piece = false;
};

/// What a checkpoint holds of this rank.
class contents {
  public:
    explicit contents(bck_contents* taken) : handle_(taken) {}
    std::uint64_t step() const { return bck_contents_step(handle_.get()); }
    std::size_t size() const { return bck_contents_size(handle_.get()); }
    /// `index` below size().
    region operator[](std::size_t index) const {
        bck_region r{};
        bck_contents_at(handle_.get(), index, &r);
        return view(r);
    }
    std::optional<region> find(const std::string& name) const {
        bck_region r{};
        if (bck_contents_find(handle_.get(), name.c_str(), &r) != BCK_OK) return std::nullopt;
        return view(r);
    }

  private:
    static region view(const bck_region& r) {
        const auto n = static_cast<std::size_t>(r.ndim);
        region out;
        if (!r.name) return out;
        out.name = r.name;
        out.dtype = r.dtype;
        out.shape = {r.shape, n};
        out.bytes = r.bytes;
        out.is_piece = r.global_shape != nullptr;
        if (r.global_shape) out.global_shape = {r.global_shape, n};
        if (r.offset) out.offset = {r.offset, n};
        return out;
    }
    std::unique_ptr<bck_contents, detail::free_contents> handle_;
};

struct restored {
    std::uint64_t step = 0;
    bck::source source = bck::source::none;
};

/// Keeps a region protected as long as it lives.
class protection {
  public:
    explicit protection(std::string name, bck_state* of = nullptr) : name_(std::move(name)), of_(of) {}
    ~protection() { release(); }
    protection(protection&& o) noexcept : name_(std::exchange(o.name_, {})), of_(o.of_) {}
    protection& operator=(protection&& o) noexcept {
        if (this != &o) {
            release();
            name_ = std::exchange(o.name_, {});
            of_ = o.of_;
        }
        return *this;
    }
    const std::string& name() const { return name_; }

  private:
    void release() noexcept {
        if (!name_.empty()) bck_state_unprotect(of_, name_.c_str());
        name_.clear();
    }
    std::string name_;
    bck_state* of_ = nullptr;
};

using extents = std::span<const std::uint64_t>;

/// Regions with memory for one save or one restart. clear() keeps what it has allocated, so that filling it
/// anew at each save allocates nothing.
class tensors {
  public:
    /// A row of numbers, or with `shape` an array of them.
    template <class T, std::size_t N>
    void add(std::string_view name, std::span<T, N> data, extents shape) {
        put(name, data.data(), data.size_bytes(), detail::dtype_of<T>(), shape, {}, {}, false);
    }
    template <class T, std::size_t N>
    void add(std::string_view name, std::span<T, N> data) {
        const std::uint64_t extent = data.size();
        add(name, data, extents(&extent, 1));
    }
    /// A single number.
    template <class T>
    requires std::is_arithmetic_v<T>
    void add(std::string_view name, T& value) { add(name, std::span(&value, 1), extents()); }
    /// A part of a larger tensor: `global` and `offset` have as many extents as `shape`.
    template <class T, std::size_t N>
    result<void> add_piece(std::string_view name, std::span<T, N> data, extents shape, extents global,
                           extents offset) {
        if (global.size() != shape.size() || offset.size() != shape.size())
            return failure(problem{BCK_E_INVALID, "shape, global shape and offset differ in length"});
        put(name, data.data(), data.size_bytes(), detail::dtype_of<T>(), shape, global, offset, true);
        return {};
    }
    /// Whatever may be copied as bytes.
    template <class T, std::size_t N>
    void add_bytes(std::string_view name, std::span<T, N> data) {
        static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>);
        const std::uint64_t extent = data.size_bytes();
        put(name, data.data(), extent, "U8", extents(&extent, 1), {}, {}, false);
    }
    /// The region that is protected under this name, where that is.
    void add_protected(std::string_view name) { put(name, nullptr, 0, nullptr, {}, {}, {}, false); }

    std::size_t size() const { return size_; }
    void clear() { size_ = 0; }
    /// For the C functions: size() of them, until the next call of any function here.
    const bck_tensor* data() {
        given_.clear();
        for (std::size_t i = 0; i < size_; ++i) {
            const auto& e = entries_[i];
            const auto* at = e.numbers.data();
            given_.push_back({e.name.c_str(), e.ptr, e.bytes, e.dtype, static_cast<int>(e.ndim), at,
                              e.piece ? at + e.ndim : nullptr, e.piece ? at + 2 * e.ndim : nullptr});
        }
        return given_.data();
    }

  private:
    struct entry {
        std::string name;
        void* ptr = nullptr;
        std::uint64_t bytes = 0;
        const char* dtype = nullptr;
        std::size_t ndim = 0;
        std::vector<std::uint64_t> numbers;  ///< shape; of a piece its tensor's shape and the offset too
        bool piece = false;
    };
    void put(std::string_view name, void* ptr, std::uint64_t bytes, const char* dtype, extents shape,
             extents global, extents offset, bool piece) {
        if (size_ == entries_.size()) entries_.emplace_back();
        auto& e = entries_[size_];
        e.name.assign(name);
        e.ptr = ptr;
        e.bytes = bytes;
        e.dtype = dtype;
        e.ndim = shape.size();
        e.piece = piece;
        e.numbers.assign(shape.begin(), shape.end());
        e.numbers.insert(e.numbers.end(), global.begin(), global.end());
        e.numbers.insert(e.numbers.end(), offset.begin(), offset.end());
        if (e.numbers.empty()) e.numbers.push_back(0);  // NULL would say that nothing is given
        ++size_;
    }
    std::vector<entry> entries_;
    std::vector<bck_tensor> given_;
    std::size_t size_ = 0;
};

/// A step of a checkpoint directory, read without a job.
class reader {
  public:
    /// Without `step` the newest that is committed.
    static result<reader> open(const std::string& dir, std::optional<std::uint64_t> step = std::nullopt) {
        bck_reader* opened = nullptr;
        const int code = bck_reader_open(dir.c_str(), step ? &*step : nullptr, &opened);
        if (code != BCK_OK) return failure(detail::checked(code).error());
        return reader(opened);
    }
    std::uint64_t step() const { return bck_reader_step(handle_.get()); }
    std::uint32_t world() const { return bck_reader_world(handle_.get()); }
    /// `rank` below world().
    result<contents> stat(std::uint32_t rank) {
        bck_contents* found = nullptr;
        const int code = bck_reader_stat(handle_.get(), rank, &found);
        if (code != BCK_OK) return failure(detail::checked(code).error());
        return contents(found);
    }
    /// Pieces from whichever ranks have them, the rest from `rank`.
    result<void> fill(std::uint32_t rank, tensors& wanted) {
        return detail::checked(bck_reader_fill(handle_.get(), rank, wanted.data(), wanted.size()));
    }

  private:
    struct close {
        void operator()(bck_reader* r) const noexcept { bck_reader_close(r); }
    };
    explicit reader(bck_reader* opened) : handle_(opened) {}
    std::unique_ptr<bck_reader, close> handle_;
};

/// One state of the process. The one without a name is the session's own; a copy is the same state.
class state {
  public:
    /// A row of numbers, or with `shape` an array of them.
    template <class T, std::size_t N>
    result<void> protect(const std::string& name, std::span<T, N> data, extents shape) {
        return detail::checked(bck_state_protect(state_, name.c_str(), data.data(), data.size_bytes(),
                                                 detail::dtype_of<T>(), shape.data(),
                                                 static_cast<int>(shape.size())));
    }
    template <class T, std::size_t N>
    result<void> protect(const std::string& name, std::span<T, N> data) {
        const std::uint64_t extent = data.size();
        return protect(name, data, extents(&extent, 1));
    }
    /// A single number.
    template <class T>
    requires std::is_arithmetic_v<T> result<void> protect(const std::string& name, T& value) {
        return protect(name, std::span(&value, 1), extents());
    }
    /// A part of a larger tensor: `global` and `offset` have as many extents as `shape`.
    template <class T, std::size_t N>
    result<void> protect_piece(const std::string& name, std::span<T, N> data, extents shape, extents global,
                               extents offset) {
        if (global.size() != shape.size() || offset.size() != shape.size())
            return failure(problem{BCK_E_INVALID, "shape, global shape and offset differ in length"});
        static constexpr std::uint64_t none = 0;  // NULL would say that nothing is given
        return detail::checked(bck_state_protect_piece(
            state_, name.c_str(), data.data(), data.size_bytes(), detail::dtype_of<T>(), shape.data(),
            static_cast<int>(shape.size()), global.empty() ? &none : global.data(),
            offset.empty() ? &none : offset.data()));
    }
    /// Whatever may be copied as bytes.
    template <class T, std::size_t N>
    result<void> protect_bytes(const std::string& name, std::span<T, N> data) {
        static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>);
        return detail::checked(bck_state_protect_bytes(state_, name.c_str(), data.data(), data.size_bytes()));
    }
    /// Protected until the result goes.
    template <class... Arguments>
    result<protection> protect_scoped(const std::string& name, Arguments&&... arguments) {
        if (auto done = protect(name, std::forward<Arguments>(arguments)...); !done)
            return failure(done.error());
        return protection(name, state_);
    }
    result<void> unprotect(const std::string& name) {
        return detail::checked(bck_state_unprotect(state_, name.c_str()));
    }

    result<void> checkpoint(std::uint64_t step) {
        return detail::checked(bck_state_checkpoint(state_, step));
    }
    /// Of these regions alone, whatever is protected.
    result<void> checkpoint(std::uint64_t step, tensors& given) {
        return detail::checked(bck_state_checkpoint_of(state_, step, given.data(), given.size()));
    }
    /// Makes the memory for it beforehand.
    result<void> reserve() { return detail::checked(bck_state_reserve(state_, nullptr, 0)); }
    result<void> reserve(tensors& given) {
        return detail::checked(bck_state_reserve(state_, given.data(), given.size()));
    }
    result<void> wait(std::uint64_t step, level how, std::chrono::milliseconds timeout) {
        constexpr std::chrono::milliseconds most{1'000'000'000};
        const auto ms = timeout > most ? most : timeout;
        return detail::checked(
            bck_state_wait(state_, step, static_cast<int>(how), static_cast<int>(ms.count())));
    }

    /// The step stays in storage under that name: bck_milestone.
    result<void> milestone(std::uint64_t step, const std::string& name) {
        return detail::checked(bck_state_milestone(state_, step, name.c_str()));
    }

    // Nothing in it: there is no checkpoint, the training begins anew. An error is something else.

    result<std::optional<std::uint64_t>> restart_query() {
        std::uint64_t step = 0;
        return found(bck_state_restart_query(state_, &step), step);
    }
    result<std::optional<restored>> restart() {
        std::uint64_t step = 0;
        int from = BCK_FROM_NONE;
        const int code = bck_state_restart(state_, &step, &from);
        return found(code, restored{step, static_cast<bck::source>(from)});
    }
    /// Into these regions alone, whatever is protected.
    result<std::optional<restored>> restart(tensors& given) {
        std::uint64_t step = 0;
        int from = BCK_FROM_NONE;
        const int code = bck_state_restart_into(state_, &step, &from, given.data(), given.size());
        return found(code, restored{step, static_cast<bck::source>(from)});
    }
    result<std::optional<contents>> stat() {
        bck_contents* taken = nullptr;
        const int code = bck_state_stat(state_, &taken);
        return found(code, contents(taken));
    }

  protected:
    explicit state(bck_state* of) : state_(of) {}

  private:
    template <class T>
    static result<std::optional<T>> found(int code, T value) {
        if (code == BCK_E_NOTFOUND) return std::optional<T>();
        if (code != BCK_OK) return failure(problem{code, bck_error()});
        return std::optional<T>(std::move(value));
    }

    bck_state* state_;
    friend class session;
};

class session : public state {
  public:
    /// Without a daemon the session is there all the same: its calls say why they do nothing.
    explicit session(const char* job = nullptr, int rank = -1, int world = -1)
        : state(nullptr), opened_(detail::checked(bck_init(job, rank, world))), owns_(true) {}
    ~session() {
        if (owns_) bck_finalize(0);
    }
    session(session&& o) noexcept
        : state(nullptr), opened_(std::move(o.opened_)), owns_(std::exchange(o.owns_, false)) {}
    session& operator=(session&&) = delete;

    /// What bck_init said.
    const result<void>& opened() const { return opened_; }

    /// A second state with steps of its own: bck_open. It is the session's, and ends with it.
    result<state> open(const std::string& name) {
        bck_state* const opened = bck_open(name.c_str());
        if (!opened) return failure(problem{BCK_E_INVALID, bck_error()});
        return state(opened);
    }

    result<void> finalize(bool drain) {
        owns_ = false;
        return detail::checked(bck_finalize(drain ? 1 : 0));
    }

  private:
    result<void> opened_;
    bool owns_ = false;
};

}  // inline namespace
}  // namespace bck
#endif
