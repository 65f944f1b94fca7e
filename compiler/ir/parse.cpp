// Parses the text form line by line: first into words, then into the parts of a node,
// then, with dtype and inputs known, into payload numbers.
#include "compiler/ir/parse.h"

#include "compiler/ir/shape_rules.h"
#include "compiler/ir/text.h"

#include <cstring>
#include <map>

namespace svod {

namespace {

// Thrown inside this file to leave a line; caught in parse_graph.
struct LineError {
  std::string why;
};

[[noreturn]] void fail(const std::string& why) { throw LineError{why}; }

using Words = std::vector<std::string_view>;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_mark(char c) {
  return c == '=' || c == ':' || c == '[' || c == ']' || c == '{' || c == '}' || c == ',';
}

Words split_words(std::string_view line) {
  Words words;
  size_t i = 0;
  while (i < line.size() && line[i] != ';') {
    if (is_space(line[i])) {
      ++i;
      continue;
    }
    size_t end = i + 1;
    if (line[i] == '"') {
      while (end < line.size() && line[end] != '"') ++end;
      if (end == line.size()) fail("a name has no closing quote");
      ++end;
    } else if (!is_mark(line[i])) {
      while (end < line.size() && !is_space(line[end]) && !is_mark(line[end]) &&
             line[end] != ';')
        ++end;
    }
    words.push_back(line.substr(i, end - i));
    i = end;
  }
  return words;
}

// What stands between "%n =" and the end of the line.
struct Parts {
  std::vector<std::string_view> inputs;        // %n
  std::string_view name, blob;                 // "x", #n
  std::map<std::string_view, Words> arguments; // name = value, or name = [values]
  std::optional<Words> values;                 // { values }
  std::optional<DType> dtype;
  std::optional<Shape> shape;
};

class Cursor {
public:
  explicit Cursor(const Words& words) : words_(words) {}
  bool done() const { return next_ == words_.size(); }
  std::string_view peek() const { return done() ? std::string_view() : words_[next_]; }
  std::string_view take() {
    if (done()) fail("the line ends early");
    return words_[next_++];
  }
  void expect(std::string_view mark) {
    if (done() || take() != mark) fail("expected '" + std::string(mark) + "'");
  }
  // Values separated by commas, up to the closing mark, which is taken too.
  Words list(std::string_view close) {
    Words values;
    if (peek() == close) {
      take();
      return values;
    }
    while (true) {
      values.push_back(take());
      if (peek() == close) break;
      expect(",");
    }
    take();
    return values;
  }

private:
  const Words& words_;
  size_t next_ = 0;
};

int64_t integer(std::string_view word) {
  auto value = int_from_text(word);
  if (!value) fail(quoted(word) + " is no integer");
  return *value;
}

void parse_type(Cursor& cursor, Parts& parts) {
  std::string_view text = cursor.take();
  parts.dtype = dtype_from_text(text);
  if (!parts.dtype) fail("no element type " + quoted(text));
  cursor.expect("[");
  Shape shape;
  for (std::string_view word : cursor.list("]")) shape.push_back(integer(word));
  parts.shape = shape;
}

Parts parse_parts(Cursor& cursor) {
  Parts parts;
  while (!cursor.done()) {
    std::string_view word = cursor.take();
    if (word == ":") {
      parse_type(cursor, parts);
      if (!cursor.done()) fail("something follows the type");
    } else if (word == "{") {
      parts.values = cursor.list("}");
    } else if (word.front() == '%') {
      parts.inputs.push_back(word);
    } else if (word.front() == '"') {
      parts.name = word;
    } else if (word.front() == '#') {
      parts.blob = word;
    } else {
      cursor.expect("=");
      if (parts.arguments.contains(word)) fail(quoted(word) + " is given twice");
      std::string_view value = cursor.take();
      parts.arguments[word] = value == "[" ? cursor.list("]") : Words{value};
    }
  }
  return parts;
}

class Parser {
public:
  explicit Parser(const Graph* blobs) : blobs_(blobs) {}

  void line(std::string_view text) {
    size_t first = text.find_first_not_of(" \t\r");
    if (first == std::string_view::npos || text[first] == '#') return;
    Words words = split_words(text);
    if (words.empty()) return;
    Cursor cursor(words);
    std::string_view head = cursor.take();
    if (head == "output") {
      parse_output(cursor);
      return;
    }
    if (head.front() != '%') fail("a line is '%n = op ...' or 'output ...'");
    int64_t number = integer(head.substr(1));
    if (nodes_.contains(number)) fail(std::string(head) + " is defined twice");
    cursor.expect("=");
    std::string_view op_text = cursor.take();
    auto op = op_from_text(op_text);
    if (!op) fail("no op " + quoted(op_text));
    Parts parts = parse_parts(cursor);
    nodes_[number] = make_node(*op, parts);
  }

  Graph finish() { return std::move(g_); }

  void add_body(int64_t number, std::shared_ptr<const Graph> body) {
    if (!bodies_.emplace(number, g_.add_body(std::move(body))).second)
      fail("a body is defined twice");
  }

private:
  NodeId find(std::string_view word) const {
    if (word.empty() || word.front() != '%') fail("expected a node");
    auto it = nodes_.find(integer(word.substr(1)));
    if (it == nodes_.end()) fail(escaped(word) + " is not defined");
    return it->second;
  }

  void parse_output(Cursor& cursor) {
    std::string name;
    if (cursor.peek().starts_with('"')) name = text_of(cursor.take());
    NodeId node = find(cursor.take());
    Parts parts = parse_parts(cursor);
    if (!parts.inputs.empty() || parts.dtype || parts.values || !parts.name.empty() ||
        !parts.blob.empty())
      fail("something follows the output");
    std::optional<Interface> seen = interface_of(parts);
    if (!parts.arguments.empty()) fail("something follows the output");
    g_.add_output(name, node, std::move(seen));
    check_interface(node, g_.outputs().back().seen);
  }

  // What "seen=i4 dims=[3,5]" says, if it is there.
  static std::optional<Interface> interface_of(Parts& parts) {
    auto type = parts.arguments.extract("seen"), dims = parts.arguments.extract("dims");
    if (!type && !dims) return std::nullopt;
    if (!type || !dims || type.mapped().size() != 1)
      fail("'seen' and 'dims' say together what the caller sees");
    auto code = onnx_type_from_text(type.mapped()[0]);
    if (!code) fail("no element type " + quoted(type.mapped()[0]));
    Interface seen{*code, {}};
    for (std::string_view word : dims.mapped()) seen.shape.push_back(integer(word));
    return seen;
  }

  void check_interface(NodeId node, const Interface& seen) const {
    std::string why = interface_fault(g_, node, seen);
    if (!why.empty()) fail(why);
  }

  std::string text_of(std::string_view word) const {
    auto name = name_from_text(word);
    if (!name) fail("bad escape in a name");
    return *name;
  }

  NodeId make_node(Op op, Parts& parts) {
    Node node{
        op, parts.dtype.value_or(DType::F32), parts.shape.value_or(Shape()), {}, {}};
    for (std::string_view word : parts.inputs) node.inputs.push_back(find(word));
    bool source = info(op).op_class == OpClass::Source;
    bool given = source || info(op).op_class == OpClass::Convert || op == Op::Reshape ||
                 op == Op::Expand || op == Op::Slice || op == Op::Call;
    if (given && !parts.shape) fail("the type of this op must be written");
    if (!source && node.inputs.empty()) fail("wrong number of inputs");
    if (op == Op::Pad) node.dtype = g_[node.inputs[0]].dtype; // its value is read with it
    node.payload = payload(node, parts);
    std::string why = infer_type(g_, node);
    if (!why.empty()) fail(why);
    if (parts.shape && (*parts.shape != node.shape || *parts.dtype != node.dtype))
      fail("the type is " + type_text(node.dtype, node.shape));
    if (op == Op::Input) {
      NodeId id = g_.add_input(text_of(parts.name), node.dtype, std::move(node.shape),
                               interface_of(parts));
      check_interface(id, g_.inputs().back().seen);
      return id;
    }
    return g_.intern(std::move(node));
  }

  Payload payload(const Node& node, Parts& parts) {
    if (node.op == Op::Input) return {0};
    if (node.op == Op::Weight) return {blob(node, parts)};
    Payload out;
    for (const PayloadField& field : payload_fields(node.op)) {
      if (field.name == "function") {
        out.push_back(blob(node, parts));
        continue;
      }
      std::string_view name = field.name == "bits" ? "value" : field.name;
      auto argument = parts.arguments.extract(name);
      if (!argument) fail("'" + std::string(name) + "' is missing");
      const Words& words = argument.mapped();
      if (field.kind == PayloadField::Kind::One && words.size() != 1)
        fail("'" + std::string(name) + "' is one number");
      if (field.kind == PayloadField::Kind::PerAxis &&
          words.size() != g_[node.inputs[0]].shape.size())
        fail("'" + std::string(name) + "' is one number per axis");
      for (std::string_view word : words)
        out.push_back(field.name == "bits" ? static_cast<int64_t>(bits(node.dtype, word))
                      : field.name == "body" || field.name == "other" ? body(word)
                                                                      : integer(word));
    }
    if (!parts.arguments.empty())
      fail(quoted(parts.arguments.begin()->first) + " is unknown here");
    return out;
  }

  static uint64_t bits(DType dtype, std::string_view word) {
    auto value = scalar_from_text(dtype, word);
    if (!value) fail(quoted(word) + " is no " + std::string(info(dtype).text));
    return *value;
  }

  int64_t body(std::string_view word) const {
    auto it = bodies_.find(integer(word));
    if (it == bodies_.end()) fail("there is no body " + escaped(word));
    return it->second;
  }

  int64_t blob(const Node& node, Parts& parts) {
    if (parts.values) {
      size_t size = static_cast<size_t>(byte_size(node.dtype));
      std::vector<std::byte> bytes(parts.values->size() * size);
      for (size_t i = 0; i < parts.values->size(); ++i) {
        uint64_t value = bits(node.dtype, (*parts.values)[i]);
        std::memcpy(bytes.data() + i * size, &value, size);
      }
      return g_.add_blob(std::move(bytes));
    }
    auto digest = parts.arguments.extract("sha256");
    if (!digest || digest.mapped().size() != 1)
      fail("a weight has { values } or sha256=");
    for (uint32_t i = 0; blobs_ && i < blobs_->blob_count(); ++i)
      if (blobs_->blob(i).digest.hex() == digest.mapped()[0])
        return g_.add_blob(blobs_->blob(i).unnoted_bytes(), blobs_->blob(i).owner);
    fail("the weight's values are not in the text, and no blob with its digest is at "
         "hand");
  }

  const Graph* blobs_;
  Graph g_;
  std::map<int64_t, NodeId> nodes_;
  std::map<int64_t, uint32_t> bodies_;
};

// The parsers of a text: the graph's, and on top of it those of the bodies that are open.
class Nest {
public:
  explicit Nest(const Graph* blobs) : blobs_(blobs) { open_.emplace_back(blobs, 0); }

  void line(std::string_view text) {
    const size_t first = text.find_first_not_of(" \t\r");
    if (first == std::string_view::npos || (text[first] != 'b' && text[first] != 'e'))
      return open_.back().first.line(text);
    Words words = split_words(text);
    if (words[0] == "body") return open(words);
    if (words[0] != "end" || words.size() != 1 || open_.size() == 1)
      fail("no body ends here");
    auto body = std::make_shared<const Graph>(open_.back().first.finish());
    const int64_t number = open_.back().second;
    open_.pop_back();
    open_.back().first.add_body(number, std::move(body));
  }

  Graph finish() {
    if (open_.size() != 1) fail("a body has no end");
    return open_.back().first.finish();
  }

private:
  void open(const Words& words) {
    constexpr size_t kMostNested = 64;
    if (words.size() != 2 || open_.size() > kMostNested) fail("a body has a number");
    open_.emplace_back(blobs_, integer(words[1]));
  }
  const Graph* blobs_;
  std::vector<std::pair<Parser, int64_t>> open_;
};

} // namespace

std::optional<Graph> parse_graph(std::string_view text, Diags& diags,
                                 const Graph* blobs) {
  Nest parser(blobs);
  size_t errors = diags.error_count();
  const auto report = [&](int64_t number, const LineError& error) {
    diags.error(Exit::InvalidModel, "line " + std::to_string(number) + ": " + error.why);
  };
  int64_t number = 1;
  for (; !text.empty(); ++number) {
    size_t end = std::min(text.find('\n'), text.size());
    try {
      parser.line(text.substr(0, end));
    } catch (const LineError& error) {
      report(number, error);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (diags.error_count() != errors) return std::nullopt;
  try {
    return parser.finish();
  } catch (const LineError& error) {
    report(number, error);
    return std::nullopt;
  }
}

} // namespace svod
