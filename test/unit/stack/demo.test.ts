import { expect } from 'chai';
import { booksLine, faultsLine } from '../../../deploy/local/demo/demo.js';

describe('the books after traffic', () => {
  const books = {
    outcome: 'match',
    salesCompared: 7,
    salesFailed: 0,
    salesTaken: 0,
    salesGone: 0,
    counts: {},
    undecided: 0,
  };

  it('balance only if everything was compared, nothing differs and no purchase is missing', () => {
    expect(booksLine(books, 0)).to.match(/^Result: 7 sales compared\. Redis and MySQL match/);
    const lost = { ...books, outcome: 'partly', salesGone: 2 };
    expect(booksLine(lost, 0)).to.match(
      /^Result: 7 sales compared\. Redis and MySQL match.* Redis no longer has 2 ended sales/,
    );
    const wrong = [
      booksLine({ ...books, outcome: 'partly', salesTaken: 5 }, 0),
      booksLine({ ...books, outcome: 'none', salesCompared: 0 }, 0),
      booksLine({ ...books, outcome: 'findings', counts: { leak: 2 } }, 0),
      booksLine({ ...books, salesFailed: 1 }, 0),
      booksLine({ ...books, undecided: 3 }, 0),
      booksLine(books, 4),
    ];
    const named = [
      /5 sales were being compared/,
      /no sale could be compared\./,
      /2 leak/,
      /1 sales could not/,
      /3 purchases undecided/,
      /4 accepted purchases have no order/,
    ];
    wrong.forEach((line, nth) => {
      expect(line)
        .not.to.contain('Redis and MySQL match')
        .and.not.match(/[.:] ?\./);
      expect(line).to.match(named[nth] as RegExp);
    });
  });

  it('lists only faults that occurred', () => {
    const none = { poisoned_batch: 0, dead_letters: 0, killed_worker: 0, half_message: 0 };
    expect(faultsLine(none)).to.equal('none');
    expect(faultsLine({ ...none, killed_worker: 2 })).to.equal('2 killed workers');
  });
});
