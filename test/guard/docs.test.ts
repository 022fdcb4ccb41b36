import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { PROBLEMS } from '../../src/contract/problem.js';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { GROUPS_OF_CHECKS } from '../../src/operate/doctor/report.js';
import { SUPPORTED_VERSIONS } from '../../src/core/doctor/versions.js';
import {
  decodeOrderEvents,
  encodeOrderEvents,
  EVENTS_PER_MESSAGE_MAX,
  ORDER_EVENT_TYPES,
  type OrderEvent,
} from '../../src/core/order-event.js';
import { ORDER_TRANSITIONS } from '../../src/core/order.js';
import { ORDERS_PER_MESSAGE_MAX } from '../../src/core/payment-deadline.js';
import { GROUPS, TOPICS } from '../../src/core/topics.js';
import { routesOf } from '../../src/http/route.js';
import { ROUTES } from '../../src/programs/routes.js';
import { readTopicLists, withGroup } from '../../src/rocketmq/admin/topic-lists.js';
import { PICTURES_IN_DOCS } from '../browser/pictures.js';

const below = (folder: string): string[] =>
  readdirSync(join(REPO_DIR, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name));
const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'bench/README.md',
  'examples/order-events/README.md',
  'examples/express-app/README.md',
  ...below('docs').filter((name) => name.endsWith('.md')),
];
const read = (page: string): string => readFileSync(join(REPO_DIR, page), 'utf8');

describe('guard: links and file names in the documentation', () => {
  /** Makes anchors as GitHub does: lower case, no punctuation, a hyphen for each space. */
  const anchorsOf = (page: string): string[] =>
    [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
      (title as string)
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    );

  it('has only links to existing pages and headings', () => {
    const broken = PAGES.flatMap((page) =>
      [...read(page).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)]
        .filter(([, path, anchor]) => {
          const target = path === '' ? page : join(dirname(page), path as string);
          if (!existsSync(join(REPO_DIR, target))) return true;
          return anchor !== undefined && !anchorsOf(target).includes(anchor);
        })
        .map(([link]) => `${page}: ${link}`),
    );
    expect(broken).to.deep.equal([]);
  });

  it('names only repository files that exist', () => {
    const missing = PAGES.flatMap((page) =>
      [...read(page).matchAll(/`((?:src|lua|test|deploy|bench|docs|examples)\/[\w./-]+\.\w+)`/g)]
        .filter(([, path]) => !existsSync(join(REPO_DIR, path as string)))
        .map(([, path]) => `${page}: ${path}`),
    );
    expect(missing).to.deep.equal([]);
  });

  it('has exactly the pictures that the browser tests take for it', () => {
    const pictures = below('docs').filter((name) => name.endsWith('.png'));
    expect(pictures).to.have.members(PICTURES_IN_DOCS.map((name) => join('docs', name)));
  });

  it('has one row per number in docs/decisions/README.md, with a link to each page', () => {
    const rows = [...read('docs/decisions/README.md').matchAll(/^\| (?:\[(\d+)\]\((\d{4})-[^)]+\.md\)|(\d+)) \|/gm)];
    expect(rows.map(([, kept, , dropped]) => Number(kept ?? dropped))).to.deep.equal(rows.map((_, index) => index + 1));
    const linked = rows.flatMap(([, kept, file]) => (kept === undefined ? [] : [{ kept: Number(kept), file }]));
    expect(linked.map(({ file }) => Number(file))).to.deep.equal(linked.map(({ kept }) => kept));
    expect(below('docs/decisions').filter((name) => /\/\d{4}-/.test(name))).to.have.length(linked.length);

    const mentions = ['src', 'lua', 'web', 'test', 'deploy', 'bench']
      .flatMap(below)
      .filter((file) => /\.(ts|tsx|mjs|lua)$/.test(file))
      .flatMap((file) =>
        [...read(file).matchAll(/\bdecision (\d+)|docs\/decisions\/(\d{4})/gi)].map(([text, number, page]) => {
          return { file, text, number: Number(number ?? page) };
        }),
      );
    expect(mentions.length).to.be.above(15);
    expect(mentions.filter(({ number }) => !linked.some(({ kept }) => kept === number))).to.deep.equal([]);
  });

  it('explains in docs/architecture.md every protocol rule that a comment or a page names', () => {
    const [, chapter = ''] = /^## Protocol rules$([^]*?)^## /m.exec(read('docs/architecture.md')) ?? [];
    const rules = [...chapter.matchAll(/^(\d+)\. /gm)].map(([, number]) => Number(number));
    expect(rules.length).to.be.above(0);
    expect(rules).to.deep.equal(rules.map((_, index) => index + 1));
    // matches `rule 7`, `rules 1 and 2`, `rules 6, 7 and 13`, `rules 1 to 4`
    const mentions = ['src', 'lua', 'test', 'deploy', 'docs']
      .flatMap(below)
      .filter((file) => /\.(ts|mjs|cjs|lua|md|conf|yml)$/.test(file))
      .flatMap((file) =>
        [...read(file).matchAll(/\brules? (\d+(?:(?:, | and | to )\d+)*)/gi)].flatMap(([text, numbers = '']) =>
          (numbers.match(/\d+/g) ?? []).map((number) => ({ file, text, number: Number(number) })),
        ),
      );
    expect(mentions.length).to.be.above(50);
    expect(mentions.filter(({ number }) => !rules.includes(number))).to.deep.equal([]);
  });
});

describe('guard: docs/buying.md', () => {
  it('has a row for each code of a buyer route, with status and advice on retries', () => {
    const codes = new Set(
      routesOf(ROUTES, 'buyers')
        .filter(({ label }) => label !== 'payment' && label !== 'probe') // payments and orders have their own pages
        .flatMap((route) => route.codes),
    );
    const rows = [...read('docs/buying.md').matchAll(/^\| (\d{3}) \| `(\w+)` \| (yes|no) \|/gm)];
    expect(rows.map(([, ...cells]) => cells)).to.have.deep.members(
      [...codes].map((code) => {
        const { status, retryAfterMs } = PROBLEMS[code];
        return [String(status), code, retryAfterMs === null ? 'no' : 'yes'];
      }),
    );
  });
});

describe('guard: docs/events.md', () => {
  const page = read('docs/events.md');
  /** Returns the first cells of the table below the heading that begins with this text. */
  const firstCells = (heading: string): string[] => {
    const table = page.slice(page.indexOf(`| ${heading} |`)).split('\n\n')[0] ?? '';
    return [...table.matchAll(/^\| `([^`]+)` \|/gm)].map(([, cell]) => cell as string);
  };
  const jsonIn = (text: string): string => /```json\n([\s\S]*?)```/.exec(text)?.[1] ?? '';

  it('shows a body with the fields that the code reads and writes', () => {
    const body = jsonIn(page);
    const decoded = decodeOrderEvents(body);
    if (decoded.outcome !== 'decoded') throw new Error(decoded.detail);
    expect(JSON.parse(encodeOrderEvents(decoded.events))).to.deep.equal(JSON.parse(body));
    const line = jsonIn(read('examples/order-events/README.md'));
    expect(decodeOrderEvents(`{"v":1,"events":[${line}]}`).outcome).to.equal('decoded');
  });

  it('has exactly the fields, types, numbers and names of the code', () => {
    const event: Required<OrderEvent> = {
      eventId: 'e',
      type: 'order.paid',
      saleId: '7',
      orders: ['1'],
      atMs: 1,
      metadata: { 1: { a: 'b' } },
    };
    const { events } = JSON.parse(encodeOrderEvents([event])) as { events: object[] };
    expect(firstCells('field')).to.have.members(['v', ...Object.keys(events[0] as object)]);
    expect(firstCells('type')).to.have.members([...ORDER_EVENT_TYPES]);
    const ends = ORDER_TRANSITIONS.pending_payment.map((state) => `\`order.${state}\``).join(', ');
    expect(page).to.include(`\`pending_payment\` | ${ends} |`);
    expect(page).to.include(`up to ${EVENTS_PER_MESSAGE_MAX} events of one sale`);
    expect(page).to.include(`1 to ${ORDERS_PER_MESSAGE_MAX.toLocaleString('en')} orders`);
    expect(page).to.include(`\`${TOPICS.orderEvent}\``);
    expect(read('examples/order-events/main.mjs')).to.include(`TOPIC = '${TOPICS.orderEvent}'`);
    const own = withGroup(readTopicLists(), 'shop-orders').groups.at(-1);
    expect(page).to.include(`After ${own?.retryMaxTimes} retries`);
    expect(Object.values(GROUPS)).not.to.include(own?.groupName);
  });
});

describe('guard: docs/doctor.md and docs/deployment.md', () => {
  it('give each doctor line an id, and end a sentence of the page with the words of each line', () => {
    for (const { id, looksAt, wrongIf, riskyIf } of GROUPS_OF_CHECKS.flatMap(({ checks }) => [...checks])) {
      expect(id).to.match(/^(settings|redis|mysql|rocketmq)\.[a-z]+(-[a-z]+)*$/);
      for (const text of [looksAt, wrongIf, riskyIf]) if (text !== undefined) expect(text, id).to.match(/[^.]$/);
      expect(wrongIf ?? riskyIf, `${id} can be something else than ok`).not.to.equal(undefined);
    }
  });

  it('require the same minimum versions', () => {
    for (const { name, least } of [SUPPORTED_VERSIONS.redis, SUPPORTED_VERSIONS.mariadb])
      expect(read('docs/deployment.md')).to.include(`${name} ≥ ${least}`);
  });
});
