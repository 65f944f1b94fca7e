"""What a packed library's header says: its numbers, inputs and outputs."""
import collections
import re

Port = collections.namedtuple("Port", "name dtype bytes")


class Header:
    def __init__(self, path):
        self.text = path.read_text()
        self.prefix = re.search(r"#define (\w+)_ABI_VERSION ", self.text)[1]

    def word(self, name):
        return re.search(rf"#define {self.prefix}_{name} (.*)\n", self.text)[1].strip('"')

    def __getitem__(self, name):
        return int(self.word(name))

    def pools(self):
        return re.findall(rf"#define {self.prefix}_POOL_(\w+)_BYTES ", self.text)

    def ports(self, kind):
        """INPUT or OUTPUT."""
        return [Port(self.word(f"{kind}_{i}_NAME"), self.word(f"{kind}_{i}_DTYPE"), self[f"{kind}_{i}_BYTES"])
                for i in range(self[f"NUM_{kind}S"])]
