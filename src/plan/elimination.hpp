#pragma once
// Exact minimisation of a sum of tables by eliminating one variable after another (bucket elimination, Dechter 1999).
// Hides the order, the arithmetic on two-part costs, and that equal parts of the sum (the equal blocks of a network)
// are worked out once. Knows nothing of tensors. Called inside src/plan only.
#include <cstdint>
#include <memory>
#include <vector>

namespace soybean::plan {

/// The price (what is minimised: bytes moved, or nanoseconds) in the upper 64 bits, bytes held (the tie break) in the
/// lower ones: compares lexicographically.
__extension__ using Cost = unsigned __int128;
constexpr Cost infinite_cost = Cost{1} << 120;                 ///< sums of up to 64 of these do not overflow
constexpr std::int64_t infinite_price = std::int64_t{1} << 56; ///< where prices are summed alone; the same holds
constexpr Cost make_cost(std::int64_t price, std::int64_t held) {
  return (Cost{static_cast<std::uint64_t>(price)} << 64) + static_cast<std::uint64_t>(held);
}
constexpr std::int64_t price_of(Cost cost) {
  return static_cast<std::int64_t>(cost >> 64);
}
constexpr std::int64_t held_of(Cost cost) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(cost));
}

/// A function of the variables in `scope` (ascending), the last running fastest.
struct Factor {
  std::vector<int> scope;
  std::shared_ptr<const std::vector<Cost>> table; ///< where this is the same, the sums it is part of are made once
};

/// An order of elimination for variables with `sizes` values, and what it takes.
struct Order {
  std::vector<int> variables;
  double largest_table = 0; ///< entries
  double work = 0;          ///< sum over eliminations of all combinations looked at, equal ones once
};
/// `alike`, per scope: equal numbers promise factors of the same table.
Order elimination_order(const std::vector<int>& sizes, const std::vector<std::vector<int>>& scopes,
                        const std::vector<int>& alike);

struct Minimum {
  std::vector<int> assignment; ///< one value per variable; among equals the first in the order of values
  Cost cost = infinite_cost;   ///< at least infinite_cost when there is none
};
Minimum eliminate(const std::vector<int>& sizes, const std::vector<Factor>& factors, const Order& order);

/// Per variable and value the lowest price of a sum with that value; infinite_price where there is none, or none of at
/// most `most`. Keeps all tables until the end.
struct Least {
  std::int64_t minimum = 0;
  std::vector<std::vector<std::int64_t>> per_value; ///< empty where the minimum is more than `enough`
};
Least least_per_value(const std::vector<int>& sizes, const std::vector<Factor>& factors, const Order& order,
                      std::int64_t enough = infinite_price, std::int64_t most = infinite_price);

} // namespace soybean::plan
