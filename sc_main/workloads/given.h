#pragma once
#include <boost/program_options/value_semantic.hpp>
#include <string>
#include <vector>

namespace kernbench {

/// Value of an option that tells whether the command line has it: a default is not parsed.
template <class T>
class GivenValue final : public boost::program_options::typed_value<T> {
 public:
  GivenValue(T* value, bool* given) : boost::program_options::typed_value<T>(value), given_(given) {}
  void xparse(boost::any& into, const std::vector<std::string>& tokens) const override {
    boost::program_options::typed_value<T>::xparse(into, tokens);
    *given_ = true;
  }

 private:
  bool* given_;
};

/// As po::value(value); `given` becomes true where the command line has the option. Both outlive the parsing.
template <class T>
boost::program_options::typed_value<T>* value_if_given(T* value, bool* given) {
  return new GivenValue<T>(value, given);  // options_description owns it
}

}  // namespace kernbench
