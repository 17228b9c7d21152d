// Which rows the timeline has: a group for each host, under it its tracks, each as high as its slices overlap.

const LANES_MAX = 6;  // of one track; more slices at once lie on top of each other in the last

function read_events(data) {
  return data.events.map(([track, is_slice, name, category, begin, length, ...args]) => ({
    track, begin, is_slice: is_slice === 1, ended: length !== null,
    end: length === null ? data.end : begin + length,
    name: data.strings[name], category: data.strings[category],
    args: args.flatMap((number, i) => (i % 2 === 0 ? [[data.strings[number], data.strings[args[i + 1]]]] : [])),
  }));
}

// One list of slices for each lane; within a lane none overlaps the next, but in the last.
function lanes_of(slices) {
  slices.sort((a, b) => a.begin - b.begin || b.end - a.end);
  const lanes = [];
  for (const slice of slices) {
    let at = lanes.findIndex(lane => lane.at(-1).end <= slice.begin);
    if (at < 0 && lanes.length < LANES_MAX) at = lanes.push([]) - 1;
    lanes[at < 0 ? LANES_MAX - 1 : at].push(slice);
  }
  return lanes;
}

const is_fault = event => event.category === 'fault' || event.category === 'check';

// What the legend switches: a category, or the name of a state.
const key_of = event => (event.category === 'state' ? 'state ' + event.name : event.category);

function read_groups(data, events) {
  const groups = new Map();
  const tracks = data.tracks.map(([group, name]) => {
    const track = {name, slices: [], instants: [], group};
    if (!groups.has(group)) groups.set(group, {name: group, open: true, tracks: [], events: []});
    groups.get(group).tracks.push(track);
    return track;
  });
  for (const event of events) {
    (event.is_slice ? tracks[event.track].slices : tracks[event.track].instants).push(event);
    groups.get(tracks[event.track].group).events.push(event);
  }
  for (const track of tracks) {
    track.lanes = lanes_of(track.slices);
    track.instants.sort((a, b) => a.begin - b.begin);
  }
  for (const group of groups.values()) group.events.sort((a, b) => a.begin - b.begin);
  // Faults first: they are what the rest is read against.
  const is_quiet = group => !group.events.every(is_fault);
  return [...groups.values()].sort((a, b) => is_quiet(a) - is_quiet(b));
}

// Places the rows from the top; returns them and the height of all.
function place_rows(groups, narrow) {
  const rows = [];
  let y = 0;
  const push = row => {
    rows.push({...row, y});
    y += row.height;
  };
  for (const group of groups) {
    push({group, height: 24});
    if (!group.open) continue;
    for (const track of group.tracks) {
      const lane_height = track.lanes.length > 2 ? 11 : 16;
      const label_height = narrow ? 14 : 0;
      push({track, lane_height, label_height,
            height: label_height + Math.max(track.lanes.length, 1) * (lane_height + 1) + 5});
    }
  }
  return [rows, y];
}

// Eight colours for the states, in the order in which they first appear; a colour for each other category.
function colour_names(events) {
  const names = new Map();
  let states = 0;
  for (const event of events) {
    const key = key_of(event);
    if (names.has(key)) continue;
    const known = ['operation', 'message', 'store', 'fault', 'check'].includes(event.category);
    names.set(key, event.category === 'state' ? 'state-' + states++ % 8 : known ? event.category : 'other');
  }
  return names;
}
