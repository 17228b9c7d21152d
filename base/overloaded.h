// One callable of several lambdas, for std::visit: std::visit(Overloaded{[](int) {...}, [](const Text&) {...}}, value).
#pragma once

namespace crossdock {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

}  // namespace crossdock
