// Erased: a shared value whose type only those know who put it in and who take it out. It lets a protocol carry a
// document of any resource from one planner to another without knowing the resource.
#pragma once

#include <memory>
#include <typeinfo>

namespace crossdock {

class Erased {
 public:
  Erased() = default;
  template <class Value>
  explicit Erased(std::shared_ptr<const Value> value) : type_(value == nullptr ? nullptr : &typeid(Value)) {
    value_ = std::move(value);
  }

  // Null when it is empty or holds another type.
  template <class Value>
  std::shared_ptr<const Value> as() const {
    if (type_ == nullptr || *type_ != typeid(Value)) return nullptr;
    return std::static_pointer_cast<const Value>(value_);
  }
  bool empty() const { return value_ == nullptr; }

 private:
  std::shared_ptr<const void> value_;
  const std::type_info* type_ = nullptr;
};

}  // namespace crossdock
