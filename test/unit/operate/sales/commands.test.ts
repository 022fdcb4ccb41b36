import { expect } from 'chai';
import { UsageError } from '../../../../src/process/cli-error.js';
import { saleImportCommand } from '../../../../src/operate/sales/calendar-commands.js';
import { newSaleOf, saleCommand, wrongStateSentence } from '../../../../src/operate/sales/commands.js';
import { saleLine } from '../../../../src/operate/sales/sale-fields.js';
import { newSale } from '../../../../src/sales/new-sale.js';
import { saleOf } from '../../../helpers/sales.js';

const NOW_MS = Date.UTC(2030, 0, 1);
const DAY_MS = 86_400_000;

describe('seckill sale --json', () => {
  it('prints the same sale as the HTTP API, with times in ISO 8601', () => {
    const sale = saleOf({ saleId: '7' }, NOW_MS);
    const { opensAtMs, closesAtMs, warmBeforeMs: _, paymentWindowMs: __, retiredAtMs: retiredAt, ...rest } = sale;
    expect(JSON.parse(saleLine(sale))).to.deep.equal({
      ...rest,
      opensAt: new Date(opensAtMs).toISOString(),
      closesAt: new Date(closesAtMs).toISOString(),
      warmBefore: null,
      paymentWindow: null,
      retiredAt,
    });
    expect(JSON.parse(saleLine({ ...sale, warmBeforeMs: 5_400_000 }))).to.include({ warmBefore: '90m' });
  });
});

describe('seckill sale create', () => {
  const FLAGS = {
    sku: 'pen',
    title: 'A pen',
    priceCents: '250',
    stock: '10',
    limitPerBuyer: '1',
    buckets: '1',
    opensAt: '2030-01-01T00:00:00Z',
  };

  const refusal = (flags: Partial<typeof FLAGS> & { closesAt?: string; warmBefore?: string }): string => {
    try {
      newSaleOf({ ...FLAGS, ...flags }, NOW_MS);
    } catch (error) {
      if (error instanceof UsageError) return error.message;
      throw error;
    }
    return 'created';
  };

  it('closes a sale one day after it opens if no closing time is given', () => {
    const terms = {
      sku: 'pen',
      title: 'A pen',
      priceCents: 250,
      currency: 'EUR',
      stock: 10,
      limitPerBuyer: 1,
      buckets: 1,
    };
    const sale = { ...terms, warmBeforeMs: null, paymentWindowMs: null };
    const window = { opensAtMs: NOW_MS, closesAtMs: NOW_MS + DAY_MS };
    expect(newSaleOf(FLAGS, NOW_MS)).to.deep.equal({ ...sale, ...window });
    expect(newSaleOf({ ...FLAGS, closesAt: '2030-01-01T02:00:00Z' }, NOW_MS).closesAtMs).to.equal(NOW_MS + 7_200_000);
  });

  it('lets the keeper run the sale if --warm-before is given', () => {
    expect(newSaleOf({ ...FLAGS, warmBefore: '10m' }, NOW_MS).warmBeforeMs).to.equal(600_000);
    expect(refusal({ warmBefore: 'soon' })).to.include('--warm-before must be a duration from 1s to 7d, such as 10m.');
  });

  it('names every mistake at once, each with its option', () => {
    expect(
      refusal({ title: '', priceCents: '2.50', stock: 'many', buckets: '0', opensAt: 'soon' }).split('\n'),
    ).to.deep.equal([
      'this sale is invalid:',
      '  --title must be a text of 1 to 200 characters.',
      '  --price-cents must be a whole number from 0 to 4294967295.',
      '  --stock must be a whole number from 1 to 10000000.',
      '  --buckets must be a whole number from 1 to 64.',
      '  --opens-at must be a time such as 2030-01-31T20:00:00Z.',
    ]);
  });

  it('reports a missing option as missing', () => {
    const { title: _title, ...rest } = FLAGS;
    expect(() => newSaleOf(rest, NOW_MS)).to.throw(UsageError, '--title is missing');
  });
});

describe('seckill sale', () => {
  it('names the command that must come first if a transition is refused', () => {
    expect(wrongStateSentence('open', { saleId: '7', state: 'draft' })).to.include('`seckill sale warm 7`');
    expect(wrongStateSentence('pause', { saleId: '7', state: 'warm' })).to.include('`seckill sale open 7`');
    expect(wrongStateSentence('open', { saleId: '7', state: 'closed' })).to.include('final');
    expect(wrongStateSentence('warm', { saleId: '7', state: 'paused' })).to.include('is paused');
  });

  it('names the columns of an import that may be left out', () => {
    let help = '';
    const command = saleImportCommand().configureOutput({ writeOut: (text) => void (help += text) });
    command.outputHelp();
    const optional = Object.entries(newSale.shape).flatMap(([name, field]) => (field.isOptional() ? [name] : []));
    expect(help).to.contain(`${optional.slice(0, -1).join(', ')} and ${optional.at(-1)} may be left out.`);
  });

  it('shows no time as a number in the help', () => {
    for (const command of saleCommand().commands) expect(command.helpInformation()).not.to.match(/\d{13}/);
  });
});
