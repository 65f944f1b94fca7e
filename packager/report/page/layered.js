// A drawing of a directed graph without cycles in layers, from above to below: each node one
// layer below the lowest that it reads, what reads farther passes the layers between in places
// of its own, so that no arrow crosses a box. K. Sugiyama, S. Tagawa, M. Toda, "Methods for
// Visual Understanding of Hierarchical System Structures" (1981): order by means of neighbours.
// Places then follow the neighbours' mean as far as the order leaves room (isotonic regression
// by pooling adjacent violators).

// An arrow over more layers than this is a straight one: its places would widen all of them.
const farthest = 40;
const sweeps = 6;
// Towards the middle, or a deep graph with more on one side leans away.
const pull = 0.94;

const meanOf = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;

// The layer of each node; `reads` holds, for each, those that it reads. Nodes are in an order
// in which each reads earlier ones.
function layersOf(reads) {
  const layers = [];
  for (const read of reads) layers.push(read.length ? Math.max(...read.map((from) => layers[from])) + 1 : 0);
  // What reads nothing stands just above its first reader.
  const first = new Map();
  reads.forEach((read, to) => read.forEach((from) => first.set(from, Math.min(first.get(from) ?? Infinity, layers[to]))));
  reads.forEach((read, node) => { if (!read.length && first.has(node)) layers[node] = first.get(node) - 1; });
  return layers;
}

// Middles as near to those wanted as the widths of their neighbours allow.
function placed(wanted, widths, gap) {
  const offsets = [0];
  for (let i = 1; i < widths.length; ++i) offsets.push(offsets[i - 1] + (widths[i - 1] + widths[i]) / 2 + gap);
  const pools = [];
  wanted.forEach((want, i) => {
    let pool = {sum: want - offsets[i], count: 1};
    while (pools.length && pools.at(-1).sum / pools.at(-1).count > pool.sum / pool.count) {
      const before = pools.pop();
      pool = {sum: pool.sum + before.sum, count: pool.count + before.count};
    }
    pools.push(pool);
  });
  const places = pools.flatMap((pool) => Array(pool.count).fill(pool.sum / pool.count));
  return places.map((place, i) => place + offsets[i]);
}

// {nodes: [{x, y}], arrows: [{from, to, points: [{x, y}]}], width, height}: middles of boxes of
// these widths, and the points that each arrow passes.
function layered(reads, widths, rowHeight, gap) {
  const layers = layersOf(reads), rows = [], cells = [];
  const put = (layer, width, node) => {
    while (rows.length <= layer) rows.push([]);
    cells.push({layer, width, node, above: [], below: [], x: 0});
    rows[layer].push(cells.length - 1);
    return cells.length - 1;
  };
  reads.forEach((read, node) => put(layers[node], widths[node], node)); // cells of nodes come first
  const join = (from, to) => {
    cells[from].below.push(to);
    cells[to].above.push(from);
  };
  const arrows = reads.flatMap((read, to) => read.map((from) => {
    const path = [from];
    if (layers[to] - layers[from] <= farthest)
      for (let layer = layers[from] + 1; layer < layers[to]; ++layer) path.push(put(layer, 6, -1));
    path.push(to);
    if (path.length === layers[to] - layers[from] + 1)
      for (let i = 1; i < path.length; ++i) join(path[i - 1], path[i]);
    return {from, to, path};
  }));
  const rank = new Map();
  const count = (row) => row.forEach((cell, i) => rank.set(cell, i));
  rows.forEach(count);
  for (let sweep = 0; sweep < sweeps; ++sweep) {
    const side = sweep % 2 === 0 ? "above" : "below";
    for (const row of sweep % 2 === 0 ? rows : rows.toReversed()) {
      const key = new Map(row.map((cell) => {
        const near = cells[cell][side];
        return [cell, near.length ? meanOf(near.map((other) => rank.get(other))) : rank.get(cell)];
      }));
      row.sort((a, b) => key.get(a) - key.get(b) || rank.get(a) - rank.get(b));
      count(row);
    }
  }
  for (let sweep = 0; sweep < 2 * sweeps; ++sweep) {
    const side = sweep % 2 === 0 ? "above" : "below";
    for (const row of sweep % 2 === 0 ? rows : rows.toReversed()) {
      const wanted = row.map((cell) => {
        const near = cells[cell][side];
        return pull * (near.length ? meanOf(near.map((other) => cells[other].x)) : cells[cell].x);
      });
      placed(wanted, row.map((cell) => cells[cell].width), gap).forEach((x, i) => { cells[row[i]].x = x; });
    }
  }
  const left = Math.min(0, ...cells.map((cell) => cell.x - cell.width / 2));
  const right = Math.max(0, ...cells.map((cell) => cell.x + cell.width / 2));
  const at = (cell) => ({x: cells[cell].x - left, y: (cells[cell].layer + 0.5) * rowHeight});
  return {nodes: reads.map((read, node) => at(node)), width: right - left, height: rows.length * rowHeight,
    arrows: arrows.map(({from, to, path}) => ({from, to, points: path.map(at)}))};
}
