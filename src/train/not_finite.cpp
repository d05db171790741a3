#include "train/not_finite.hpp"

#include "base/error.hpp"
#include "data/order.hpp"
#include "train/loop.hpp"
#include "train/on_root.hpp"
#include "train/progress.hpp"
#include "train/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace soybean::train {

namespace {

/// So many are looked at: some seconds' worth.
constexpr std::int64_t most_values = std::int64_t{1} << 28;

/// Looks at samples one by one, until it has found one or seen enough.
class Search {
public:
  Search(const Job& job, data::Split split)
      : reader_(*job.reader), split_(split), precision_(job.graph.precision), left_(most_values) {
    for (const graph::Tensor& tensor : job.graph.tensors)
      if (tensor.role == graph::Role::target && tensor.first_row == 0)
        targets_ = Shape(tensor.shape.begin() + 1, tensor.shape.end());
  }

  /// "file[7], got nan expected finite numbers", or "".
  const std::string& found() const { return found_; }
  bool over() const { return !found_.empty() || left_ <= 0; }

  void look_at(std::int64_t id) {
    const auto look = [&](data::What what, const Shape& shape) {
      if (over()) return;
      left_ -= volume(shape);
      const double bad =
          precision_ == DType::f64 ? first_bad<double>(id, what, shape) : first_bad<float>(id, what, shape);
      if (!std::isfinite(bad))
        found_ = fmt::format("{}, got {} expected finite numbers of {}", reader_.where(split_, id, what), plain(bad),
                             to_string(precision_));
    };
    look(data::What::inputs, reader_.info().sample);
    if (targets_) look(data::What::targets, *targets_);
  }

private:
  /// The first value that is not finite, else 0.
  template<class T>
  double first_bad(std::int64_t id, data::What what, const Shape& shape) const {
    std::vector<T> values(static_cast<std::size_t>(volume(shape)));
    const std::span<const std::int64_t> ids(&id, 1);
    if (what == data::What::inputs)
      reader_.read_inputs(split_, ids, whole(shape), precision_, values.data());
    else
      reader_.read_targets(split_, ids, whole(shape), precision_, values.data());
    const auto bad = std::find_if(values.begin(), values.end(), [](T value) { return !std::isfinite(value); });
    return bad == values.end() ? 0 : static_cast<double>(*bad);
  }

  const data::Reader& reader_;
  data::Split split_;
  DType precision_;
  std::optional<Shape> targets_;
  std::int64_t left_;
  std::string found_;
};

} // namespace

/// The latest steps come first, then, where samples are mixed, all that may have been mixed into theirs.
std::string bad_training_sample(const Job& job, std::int64_t done) {
  const data::Order order = order_of(job);
  Search search(job, data::Split::train);
  const std::int64_t epoch = (order.samples + order.batch - 1) / order.batch;
  for (std::int64_t step = done - 1; step >= std::max<std::int64_t>(0, done - epoch) && !search.over(); --step)
    for (std::int64_t row = 0; row < order.batch && !search.over(); ++row)
      search.look_at(data::sample_at(order, step, row));
  const auto& steps = job.config.data.augment;
  if (std::any_of(steps.begin(), steps.end(), config::mixes))
    for (std::int64_t id = 0; id < order.samples && !search.over(); ++id) search.look_at(id);
  return search.found();
}

namespace {

std::string bad_in_validation(const Job& job) {
  Search search(job, data::Split::validation);
  const std::int64_t samples = job.reader->info().validation_samples;
  for (std::int64_t id = 0; id < samples && !search.over(); ++id) search.look_at(id);
  return search.found();
}

/// What every rank has found alike.
[[noreturn]] void fail_alike(const std::string& text) {
  Error error(text, ExitCode::failed);
  error.mark_on_all_ranks();
  throw error;
}

} // namespace

void fail_for_loss(const Job& job, comm::Comm& comm, std::int64_t done, double loss) {
  const std::string bad = text_from_root(comm, [&] { return bad_training_sample(job, done); });
  if (!bad.empty())
    fail_alike(fmt::format("{}. after step {} the loss is {} for it: mend the sample or leave it out; checkpoints "
                           "written before are kept",
                           bad, done, plain(loss)));
  fail_alike(fmt::format("step {}: the loss, got {} expected a finite number. lower train.optimizer.lr (now {:g}); "
                         "checkpoints written before are kept",
                         done, plain(loss), learning_rate(job.config.train, order_of(job), done - 1)));
}

void fail_for_validation(const Job& job, comm::Comm& comm, const std::string& where, double loss) {
  const std::string bad = text_from_root(comm, [&] { return bad_in_validation(job); });
  if (!bad.empty())
    fail_alike(fmt::format("{}. the validation loss of {} is {} for it: mend the sample or leave it out; checkpoints "
                           "written before are kept",
                           bad, where, plain(loss)));
  fail_alike(fmt::format("{}: the validation loss, got {} expected a finite number. the weights have grown too large, "
                         "train with a lower train.optimizer.lr; checkpoints written before are kept",
                         where, plain(loss)));
}

} // namespace soybean::train
