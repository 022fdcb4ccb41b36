import { expect } from 'chai';
import type { Answer } from '../../chaos/harness/http.js';
import { joinLogs, OpLog } from '../../chaos/harness/op-log.js';

const answer = (status: number, json: Record<string, unknown> = {}): Answer => ({
  status,
  json,
  headers: {},
  text: JSON.stringify(json),
});
const soldOut = answer(409, { code: 'sold_out' });

describe('op log', () => {
  it('is ok if any attempt was ok, fail if every attempt was refused, otherwise unknown', () => {
    const log = new OpLog();
    const outcomeOf = (key: string, ...answers: (Answer | null)[]): unknown => {
      for (const one of answers) log.recordAnswer(key, one);
      return log.entries.get(key);
    };
    expect(outcomeOf('a', null, answer(202))).to.equal('ok');
    expect(outcomeOf('b', answer(202), soldOut)).to.equal('ok');
    expect(outcomeOf('c', soldOut, answer(503, { code: 'overloaded' }))).to.equal('fail');
    expect(outcomeOf('d', answer(503, { code: 'outcome_unknown' }), soldOut)).to.equal('unknown');
    expect(outcomeOf('e', answer(500))).to.equal('unknown');
    expect([...log.soldOut.keys()], 'only where it was the last answer').to.deep.equal(['b', 'd']);
  });

  it('keeps each change of the status of a purchase once, in order', () => {
    const log = new OpLog();
    const pending = answer(202, { status: 'pending' });
    const ordered = answer(200, { status: 'ordered', orderId: '9' });
    for (const one of [answer(404), pending, pending, answer(503), null, ordered]) log.recordStatus('a', one);
    expect(log.statuses.get('a')).to.deep.equal([
      { status: 'absent', orderId: null },
      { status: 'pending', orderId: null },
      { status: 'ordered', orderId: '9' },
    ]);
  });

  it('records a move only if it was confirmed', () => {
    const log = new OpLog();
    log.recordMove('pay', '9', answer(409, { code: 'wrong_state' }));
    expect(log.moves.size).to.equal(0);
    log.recordMove('pay', '9', answer(200));
    expect([...(log.moves.get('9') ?? [])]).to.deep.equal(['pay']);
  });

  it('can be merged with the op logs of other clients', () => {
    const [one, two] = [new OpLog(), new OpLog()];
    one.recordAnswer('a', soldOut);
    two.recordAnswer('a', answer(202));
    one.recordAnswer('b', soldOut);
    two.recordAnswer('b', null);
    one.recordAnswer('c', soldOut);
    one.recordMove('pay', '9', answer(200));
    two.recordMove('cancel', '9', answer(200));
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
