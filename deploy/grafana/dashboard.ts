import type { Board, Panel } from './boards.js';

const WIDTH = 24;
const PER_ROW = 2;
const HEIGHT = 8;
const SOURCE = { type: 'prometheus', uid: '${source}' };

/** The JSON that Grafana 10 and later import. The data source is chosen in the board. */
export function dashboardOf({ uid, title, about, variable, rows }: Board): object {
  const panels: object[] = [];
  let y = 0;
  for (const row of rows) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title: row.title,
      collapsed: false,
      gridPos: { x: 0, y, w: WIDTH, h: 1 },
    });
    y += 1;
    row.panels.forEach((panel, place) => {
      const w = WIDTH / PER_ROW;
      const at = { x: (place % PER_ROW) * w, y: y + Math.floor(place / PER_ROW) * HEIGHT, w, h: HEIGHT };
      panels.push({ id: panels.length + 1, ...timeSeries(panel), gridPos: at });
    });
    y += Math.ceil(row.panels.length / PER_ROW) * HEIGHT;
  }
  const narrowed = variable && {
    name: variable.name,
    label: variable.name,
    type: 'query',
    datasource: SOURCE,
    query: { query: `label_values(${variable.metric}, ${variable.label})`, refId: variable.name },
    refresh: 2, // read again with every change of the time range
    includeAll: true,
    allValue: '.+',
    multi: false,
    sort: 4, // numbers, the newest sale first
  };
  return {
    uid,
    title,
    description: about,
    tags: ['seckill'],
    editable: true,
    graphTooltip: 1, // one cursor over all panels
    refresh: '5s',
    schemaVersion: 39,
    time: { from: 'now-15m', to: 'now' },
    timezone: 'browser',
    templating: {
      list: [
        { name: 'source', label: 'Prometheus', type: 'datasource', query: 'prometheus' },
        ...(narrowed === undefined ? [] : [narrowed]),
      ],
    },
    links: [{ type: 'dashboards', title: 'Seckill', tags: ['seckill'], asDropdown: true, keepTime: true }],
    panels,
  };
}

const timeSeries = ({ title, unit, lines, stacked = false, help }: Panel): object => ({
  type: 'timeseries',
  title,
  ...(help === undefined ? {} : { description: help }),
  datasource: SOURCE,
  fieldConfig: {
    defaults: {
      unit,
      min: 0,
      custom: { fillOpacity: stacked ? 30 : 5, stacking: { mode: stacked ? 'normal' : 'none' }, showPoints: 'never' },
    },
    overrides: [],
  },
  options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
  targets: Object.entries(lines).map(([legendFormat, expr], index) => ({
    refId: String.fromCharCode('A'.charCodeAt(0) + index),
    datasource: SOURCE,
    expr,
    legendFormat,
  })),
});
