import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { BOARDS } from './boards.js';
import { dashboardOf } from './dashboard.js';

// Writes each board as JSON into dist/boards, for Grafana to import: `npm run build:boards`.

const folder = new URL('../../dist/boards/', import.meta.url);
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
for (const board of BOARDS) writeFileSync(new URL(`${board.uid}.json`, folder), JSON.stringify(dashboardOf(board)));
