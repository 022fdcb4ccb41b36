import { expect } from 'chai';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Answer } from '../../chaos/harness/http.js';
import { OpLog } from '../../chaos/harness/op-log.js';
import { joinLogs } from '../../chaos/context-sales.js';

const answer = (status: number, json: Record<string, unknown> = {}): Answer => ({
  ...{ status, json, headers: {}, text: JSON.stringify(json) },
});
const soldOut = answer(409, { code: 'sold_out' });

describe('op log', () => {
  it('is ok if any try was ok, fail if every one was refused, else unknown', () => {
    const log = new OpLog();
    const heard = (key: string, ...answers: (Answer | null)[]): unknown => {
      for (const one of answers) log.hear(key, one);
      return log.entries.get(key);
    };
    expect(heard('a', null, answer(202))).to.equal('ok');
    expect(heard('b', answer(202), soldOut)).to.equal('ok');
    expect(heard('c', soldOut, answer(503, { code: 'overloaded' }))).to.equal('fail');
    expect(heard('d', answer(503, { code: 'outcome_unknown' }), soldOut)).to.equal('unknown');
    expect(heard('e', answer(500))).to.equal('unknown');
    expect([...log.soldOut.keys()], 'only where it was the last word').to.deep.equal(['b', 'd']);
  });

  it('keeps the looks of a purchase in order, each change once, and passes over answers that say nothing', () => {
    const log = new OpLog();
    const pending = answer(202, { status: 'pending' });
    const ordered = answer(200, { status: 'ordered', orderId: '9' });
    for (const one of [answer(404), pending, pending, answer(503), null, ordered]) log.look('a', one);
    expect(log.looks.get('a')).to.deep.equal([
      { status: 'absent', orderId: null },
      { status: 'pending', orderId: null },
      { status: 'ordered', orderId: '9' },
    ]);
  });

  it('notes moves that were confirmed', () => {
    const log = new OpLog();
    log.move('pay', '9', answer(409, { code: 'wrong_state' }));
    expect(log.moves.size).to.equal(0);
    log.move('pay', '9', answer(200));
    expect([...(log.moves.get('9') ?? [])]).to.deep.equal(['pay']);
  });

  it('writes a line per event, in the order of time', () => {
    const dir = mkdtempSync(join(tmpdir(), 'seckill-op-log-'));
    try {
      const file = join(dir, 'logs', 'client-1.jsonl');
      const log = new OpLog(file);
      log.invoke('purchase', 'a');
      log.hear('a', soldOut);
      log.flush();
      log.invoke('look', 'a');
      log.flush();
      const lines = readFileSync(file, 'utf8').trim().split('\n');
      const events = lines.map((line) => {
        const { atMs, ...event } = JSON.parse(line) as Record<string, unknown>;
        expect(atMs).to.be.a('number');
        return event;
      });
      expect(events).to.deep.equal([
        { op: 'purchase', key: 'a', event: 'invoke' },
        { op: 'purchase', key: 'a', event: 'fail', status: 409, code: 'sold_out' },
        { op: 'look', key: 'a', event: 'invoke' },
      ]);
      expect(log.requests).to.equal(1);
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });

  it('joins with those of other clients', () => {
    const [one, two] = [new OpLog(), new OpLog()];
    one.hear('a', soldOut);
    two.hear('a', answer(202));
    one.hear('b', soldOut);
    two.hear('b', null);
    one.hear('c', soldOut);
    one.move('pay', '9', answer(200));
    two.move('cancel', '9', answer(200));
    const { entries, history } = joinLogs([one, two]);
    expect([...entries]).to.deep.equal([
      ['a', 'ok'],
      ['b', 'unknown'],
      ['c', 'fail'],
    ]);
    expect([...history.soldOut.keys()]).to.deep.equal(['c']);
    expect([...(history.moves.get('9') ?? [])]).to.have.members(['pay', 'cancel']);
  });
});
