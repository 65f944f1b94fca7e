// Numbers and names as people read them. Their exact values are in the JSON.
const exact = (number) => number.toLocaleString("en");

function scaled(number, step, units) {
  let unit = 0;
  while (number >= step && unit + 1 < units.length) {
    number /= step;
    ++unit;
  }
  const digits = unit === 0 ? 0 : number < 100 ? 1 : 0;
  return `${number.toFixed(digits)}${units[unit]}`;
}
const sizeText = (bytes) => scaled(bytes, 1024, [" B", " KiB", " MiB", " GiB"]);
const countText = (count) => scaled(count, 1000, ["", " k", " M", " G", " T"]);
const timeText = (us) => us < 1000 ? `${us.toFixed(us < 10 ? 3 : 1)} us` : us < 1e6 ? `${(us / 1000).toFixed(2)} ms`
  : `${(us / 1e6).toFixed(2)} s`;
const percent = (share) => `${(100 * share).toFixed(1)} %`;
// Two digits, or what a small one has.
const rateText = (rate) => rate >= 100 ? exact(Math.round(rate)) : String(Number(rate.toPrecision(2)));
const nodesText = (nodes) => nodes.length === 0 ? "a node without a name" : nodes.join(", ");
const nameOf = (pack) => pack.model.name || pack.file.split("/").pop();

function commandText(pack) {
  const quoted = (word) => /^[\w@%+=:,.\/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
  return ["svod-pack", ...pack.command].map(quoted).join(" ");
}
