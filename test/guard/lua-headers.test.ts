import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import type { StoreAnswer } from '../../src/core/outcome.js';
import type { LimitVerdict } from '../../src/core/limits.js';
import type { Issued, NonceTaken, Redeemed } from '../../src/core/ports/admission-stores.js';
import type { PlaceWord, SteerWord } from '../../src/core/ports/line-store.js';
import type { ReconcileStore } from '../../src/core/ports/reconcile-store.js';
import type { RepairStore } from '../../src/core/ports/repair-stores.js';
import type { Reacquired, BatchStore } from '../../src/core/ports/batch-store.js';
import type { ResolveVerdict, DeductVerdict, SaleStore } from '../../src/core/ports/stock-store.js';
import type { TransferredIn, TransferredOut, TransferStore } from '../../src/core/ports/transfer-store.js';
import { readScripts, SCRIPT_NAMES, type ScriptName } from '../../src/redis/scripts.js';

const LUA = new URL('../../lua/', import.meta.url);
const REDIS = new URL('../../src/redis/', import.meta.url);
const CODE_LINES_MAX = 60;
const LUA_FILES = readdirSync(LUA).filter((file) => file !== 'include');

interface Script {
  readonly file: string;
  readonly name: string;
  readonly keysInName: number;
  readonly header: string;
  /** The lines below the header, without included fragments. */
  readonly ownLines: readonly string[];
  readonly code: string;
}

const fragments = readdirSync(new URL('include/', LUA)).map((file) => ({
  name: file.replace(/\.lua$/, ''),
  text: readFileSync(new URL(`include/${file}`, LUA), 'utf8'),
}));
const composed = new Map(readScripts().map(({ name, text }) => [name as string, text]));

/** The scripts with their fragments included, as Redis receives them. */
const scripts: Script[] = LUA_FILES.map((file) => {
  const [, name = '', keys = ''] = /^([a-z]+(?:-[a-z]+)*)-(\d+)\.lua$/.exec(file) ?? [];
  const text = readFileSync(new URL(file, LUA), 'utf8');
  const lines = text.split('\n');
  const end = lines.findIndex((line) => !line.startsWith('-- '));
  const header = lines.slice(0, end).join('\n');
  const code = (composed.get(name) ?? text).split('\n').slice(end).join('\n');
  return { file, name, keysInName: Number(keys), header, ownLines: lines.slice(end), code };
});

const named = (name: string): Script => {
  const script = scripts.find((candidate) => candidate.name === name);
  if (!script) throw new Error(`lua/ has no ${name}`);
  return script;
};

const numbersOf = (word: 'KEYS' | 'ARGV', text: string): number[] =>
  [...new Set([...text.matchAll(new RegExp(`${word}\\[(\\d+)\\]`, 'g'))].map(([, number]) => Number(number)))].sort(
    (a, b) => a - b,
  );
const firstNumbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);
const withoutComments = (code: string): string => code.replaceAll(/--.*$/gm, '');

/** Returns the words below the line that begins with Returns: `--   word | word   why`. */
function wordsListed({ header }: Script): string[] {
  const [, returns = ''] = header.split(/^-- Returns/m);
  return [...returns.matchAll(/^-- {3}([a-z_]+(?: \| [a-z_]+)*)(?=,| {2,}|$)/gm)].flatMap(([, words = '']) =>
    words.split(' | '),
  );
}

/** Returns every literal that a script returns or stores as an answer. */
function wordsInCode({ code }: Script): string[] {
  const places = [
    ...withoutComments(code).matchAll(/\breturn\b(.*)$/gm),
    ...withoutComments(code).matchAll(/\b(?:word|refused|reply)\b[^=\n]*=(?!=)(.*)$/gm),
    ...withoutComments(code).matchAll(/\bthen word =(?!=)(.*)$/gm),
  ];
  const literals = places.flatMap(([, text = '']) => [...text.matchAll(/'([a-z]+(?:_[a-z]+)*)'/g)].map(([, w]) => w));
  return [...new Set(literals)] as string[];
}

/** Words that come from the marker itself. */
const MARKERS = ['deducted', 'aborted', 'claimed'];

/** Words of the adapter: Redis or its replicas did not answer, or the script failed. */
type FromNoScript = 'outcome_unknown' | 'unreplicated' | 'errored';
type Awaiting<F extends (...args: never[]) => unknown> = Awaited<ReturnType<F>>;

/**
 * Lists all words of a union. The compiler checks that the list is complete, and a test that the script returns exactly
 * these words.
 */
const allOf =
  <U extends string>() =>
  <const L extends readonly U[]>(words: L & ([U] extends [L[number]] ? unknown : never)): readonly string[] =>
    words;

const ANSWERS = allOf<StoreAnswer['outcome']>()([
  ...(['loading', 'replayed', 'request_conflict', 'paused', 'closed', 'not_open', 'limit_reached'] as const),
  'sold_out',
]);

const WORDS: Readonly<Record<ScriptName, readonly string[]>> = {
  precheck: ANSWERS,
  deduct: allOf<Exclude<DeductVerdict['outcome'], FromNoScript>>()([
    ...(['already_deducted', 'aborted', 'claimed', 'not_warmed', 'stale_epoch', 'refused', 'deducted'] as const),
  ]),
  resolve: allOf<Exclude<ResolveVerdict, FromNoScript>>()(['deducted', 'claimed', 'aborted', 'no_answer', 'outlived']),
  // for `repairing`, the script changes nothing and the adapter throws
  release: allOf<Awaiting<BatchStore['release']>[number] | 'repairing'>()(['repairing', 'nothing', 'released']),
  'mark-recorded': ['repairing', 'recorded'],
  unpark: allOf<Awaiting<BatchStore['unpark']>>()(['unknown', 'aborted', 'recorded', 'already_pending', 'unparked']),
  reacquire: allOf<Reacquired['outcome']>()(['not_warmed', 'unavailable', 'claimed']),
  warm: allOf<Awaiting<SaleStore['warm']>>()(['already_warm', 'warmed']),
  'set-state': allOf<Awaiting<SaleStore['setState']>>()(['not_warmed', 'repairing', 'closed', 'set']),
  edit: allOf<Awaiting<SaleStore['edit']>>()(['unavailable', 'moved', 'refused', 'done', 'not_enough']),
  adjust: allOf<Awaiting<ReconcileStore['adjust']>>()(['not_warmed', 'selling', 'moved', 'adjusted']),
  lock: allOf<Awaiting<RepairStore['lock']>>()(['busy', 'moved', 'locked']),
  stage: allOf<Awaiting<RepairStore['stage']>>()(['superseded', 'staged']),
  'restore-marker': allOf<Awaiting<RepairStore['restoreMarker']>>()(['superseded', 'restored']),
  swap: allOf<Awaiting<RepairStore['swap']>>()(['superseded', 'swapped']),
  'take-permits': allOf<LimitVerdict['outcome']>()(['rate_limited', 'allowed']),
  'take-nonce': allOf<NonceTaken>()(['outdated', 'used', 'fresh']),
  'issue-token': allOf<Issued>()([
    ...(['too_early', 'too_late', 'issued_before', 'buyer_limit', 'address_limit', 'none_left', 'issued'] as const),
  ]),
  'redeem-token': allOf<Redeemed>()(['redeemed_before', 'redeemed_for_another', 'ended', 'redeemed']),
  'take-place': allOf<PlaceWord>()(['ended', 'overloaded', 'admitted', 'waiting']),
  'steer-line': allOf<SteerWord>()(['no_room', 'emptied', 'not_open', 'admitted']),
  'transfer-out': allOf<TransferredOut['outcome']>()(['unavailable', 'transferred', 'empty']),
  'transfer-in': allOf<TransferredIn['outcome']>()(['unavailable', 'already_received', 'received']),
  'transfer-end': allOf<Awaiting<TransferStore['endTransfer']>>()(['unavailable', 'already_ended', 'ended']),
  'read-request': [], // returns an entry
  'read-line': [], // returns a text
  'bucket-status': [], // returns the stored value
  'report-breakers': [], // returns votes
  'read-transfers': [], // returns numbers
  'take-due': [], // returns batches
  'leave-alone': [], // returns a number
};

describe('guard: the script headers', () => {
  it('names every file <verb>-<numberOfKeys>.lua', () => {
    for (const { file, name } of scripts) expect(name, file).not.to.equal('');
    expect(new Set(scripts.map(({ name }) => name)).size).to.equal(scripts.length);
  });

  it('has exactly the scripts that the code knows', () => {
    expect(SCRIPT_NAMES).to.have.members(scripts.map(({ name }) => name));
    const sources = readdirSync(REDIS).map((file) => readFileSync(new URL(file, REDIS), 'utf8'));
    const run = sources.flatMap((text) => [...text.matchAll(/\brun\(\s*'([a-z-]+)'/g)].map(([, name]) => name));
    expect(new Set(run)).to.deep.equal(new Set(SCRIPT_NAMES));
  });

  for (const script of scripts) {
    describe(`lua/${script.file}`, () => {
      const { name, keysInName, header, code } = script;

      it('begins with its name and purpose', () => {
        expect(header).to.match(new RegExp(`^-- ${name}: [a-z].{20,}`));
      });

      it('has the same number of KEYS in its name, header and code', () => {
        expect(numbersOf('KEYS', header)).to.deep.equal(firstNumbers(keysInName));
        expect(numbersOf('KEYS', withoutComments(code))).to.deep.equal(firstNumbers(keysInName));
        const lines = header
          .split('\n')
          .filter((line) => /^-- KEYS\[\d+\] {2}sk:\{(?:saleId:bucket|entry|room:<saleId>)\}:\S+ {2,}\S/.test(line));
        expect(lines, 'one line per key, with its content').to.have.length(keysInName);
      });

      it('names exactly the ARGV that it uses', () => {
        const used = numbersOf('ARGV', withoutComments(code));
        expect(numbersOf('ARGV', header)).to.deep.equal(used);
        expect(used).to.deep.equal(firstNumbers(used.length));
      });

      it('reads no key or argument by a computed index', () => {
        expect(withoutComments(code)).not.to.match(/\b(KEYS|ARGV)\[[^\d]/);
        expect(withoutComments(code)).not.to.match(/\b(KEYS|ARGV)\b(?!\[)/);
      });

      it('lists the words of the port under Returns, in the same order', () => {
        expect(header).to.match(/^-- Returns/m);
        expect(wordsListed(script)).to.deep.equal(WORDS[name as ScriptName]);
      });

      it('returns exactly these words', () => {
        const blames = name === 'deduct' ? ANSWERS.filter((word) => word !== 'loading') : [];
        const allowed = [...wordsListed(script), ...blames];
        const said = wordsInCode(script);
        expect(allowed, 'said but not listed').to.include.members(said);
        const readsMarker = /string\.match\((?:redis\.call\('GET'|marker)/.test(code);
        const fromMarker = readsMarker && name !== 'mark-recorded' ? MARKERS : [];
        expect([...said, ...fromMarker], 'listed but never said').to.include.members(allowed);
      });

      it(`has at most ${CODE_LINES_MAX} lines of code`, () => {
        const lines = script.ownLines.filter((line) => line.trim() !== '');
        expect(lines.length).to.be.at.most(CODE_LINES_MAX);
      });

      it('calls no command that reads all keys or blocks the server', () => {
        expect(code).not.to.match(/'(KEYS|SCAN|[HSZ]SCAN|FLUSHALL|FLUSHDB|SMEMBERS|HGETALL)'/i);
        expect(code).not.to.match(/os\.|math\.random|loadstring/);
      });
    });
  }

  describe('lua/include', () => {
    for (const { name, text } of fragments) {
      it(`includes ${name}, which begins with its name and purpose and uses no ARGV`, () => {
        expect(text).to.match(new RegExp(`^-- ${name}: [a-z].{20,}`));
        expect(withoutComments(text)).not.to.match(/\bARGV\b/);
        const users = [
          ...LUA_FILES.map((file) => readFileSync(new URL(file, LUA), 'utf8')),
          ...fragments.map((f) => f.text),
        ];
        expect(users.some((user) => user.includes(`\n--- include "${name}"\n`))).to.equal(true);
      });
    }

    it('has each shared step in its fragment only', () => {
      for (const { file, ownLines } of scripts)
        expect(ownLines.join('\n'), file).not.to.match(/'INFO'|redis\.call\('TIME'\)\n/);
    });

    it('includes each fragment once in every script', () => {
      for (const { file, code } of scripts) {
        expect(code, file).not.to.match(/^--- include/m);
        for (const { name } of fragments)
          expect(code.split(`\n-- ${name}: `).length, `${name} in ${file}`).to.be.at.most(2);
      }
    });

    it('throws an error that names an unknown fragment or a missing script', () => {
      const folder = mkdtempSync(join(tmpdir(), 'lua-'));
      after(() => rmSync(folder, { recursive: true }));
      const url = pathToFileURL(`${folder}/`);
      expect(() => readScripts(url)).to.throw('lacks the script precheck');
      writeFileSync(join(folder, 'precheck-4.lua'), '--- include "nowhere"\n');
      expect(() => readScripts(url)).to.throw('lacks the fragment nowhere');
    });
  });

  it('refuses in deduct with the same words as precheck, as its header says', () => {
    expect(named('deduct').header).to.include('the words of precheck');
  });

  it('has no product code that lists, scans or flushes all keys', () => {
    for (const file of readdirSync(REDIS)) {
      const text = readFileSync(new URL(file, REDIS), 'utf8');
      expect(text, file).not.to.match(/\.(keys|scan|scanStream|flushall|flushdb)\(/i);
    }
  });
});
