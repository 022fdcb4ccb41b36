import { expect } from 'chai';
import { readImport } from '../../../../src/operate/sales/import-sales.js';
import { readCsv } from '../../../../src/operate/sales/read-csv.js';

const NOW_MS = Date.UTC(2030, 0, 1);
const HEAD = 'sku,title,priceCents,stock,limitPerBuyer,buckets,opensAt,closesAt,warmBefore,paymentWindow';
const TIMES = '2030-01-31T20:00:00Z,2030-01-31T22:00:00Z';
const csv = (...lines: string[]) => readImport([HEAD, ...lines].join('\n'), 'csv', NOW_MS);
const said = ({ errors }: ReturnType<typeof readImport>): string[] =>
  errors.map(({ line, message }) => `${line}: ${message}`);

describe('readCsv', () => {
  const cells = (text: string) => {
    const read = readCsv(text);
    return 'rows' in read ? read.rows.map(({ line, cells: row }) => [line, ...row]) : `${read.line}: ${read.error}`;
  };

  it('reads cells by RFC 4180 and counts the lines inside quotes', () => {
    expect(cells('a,b\r\n1,2\r\n')).to.deep.equal([
      [1, 'a', 'b'],
      [2, '1', '2'],
    ]);
    expect(cells('a, b ,\n\n"x, ""y""",,"two\nlines"\n3,4,5')).to.deep.equal([
      [1, 'a', 'b', ''],
      [3, 'x, "y"', '', 'two\nlines'],
      [5, '3', '4', '5'],
    ]);
    expect(cells('')).to.deep.equal([]);
    expect(cells('a,')).to.deep.equal([[1, 'a', '']]);
    expect(cells('\n\n')).to.deep.equal([]);
  });

  it('reads Excel files with semicolons or tabs, and lines that end in CR', () => {
    for (const separator of [',', ';', '\t']) {
      for (const end of ['\n', '\r\n', '\r']) {
        const lines = [
          ['sku', 'title'],
          ['pen', '"A ""pen"",;\t"'],
          ['"mug"', ''],
        ].map((row) => row.join(separator));
        const text = lines.join(end) + end;
        expect(cells(text), JSON.stringify(text)).to.deep.equal([
          [1, 'sku', 'title'],
          [2, 'pen', 'A "pen",;\t'],
          [3, 'mug', ''],
        ]);
      }
    }
    expect(cells('a\r"x\ry"\rb')).to.deep.equal([
      [1, 'a'],
      [2, 'x\ry'],
      [4, 'b'],
    ]);
  });

  it('refuses a misplaced quote and names its line', () => {
    for (const text of ['a\nb"c,d', 'a\n"b" c', 'a\n"b', 'a\n"b""', 'a\n"b\nc']) {
      expect(cells(text), text).to.equal('2: a quote is misplaced or not closed');
    }
  });
});

describe('readImport', () => {
  it('reads sales from CSV with their lines, and an empty cell as a missing value', () => {
    const { sales, errors } = csv(`pen,"A pen, blue",250,100,1,,${TIMES},10m,5m`, '', `mug,A mug,900,5,2,4,${TIMES},,`);
    expect(errors).to.deep.equal([]);
    expect(
      sales.map(({ line, sale }) => [
        line,
        sale.sku,
        sale.title,
        sale.buckets,
        sale.warmBeforeMs,
        sale.paymentWindowMs,
      ]),
    ).to.deep.equal([
      [2, 'pen', 'A pen, blue', 1, 600_000, 300_000],
      [4, 'mug', 'A mug', 4, null, null],
    ]);
  });

  it('names every wrong line and field', () => {
    const wrong = csv(
      `pen,A pen,250,0,1,,${TIMES},10m,`,
      `pen,A pen,2.50,100,1,,2030-01-31T20:00:00Z,2030-01-31T19:00:00Z,soon,`,
      `mug,A mug,900,5,2,,2030-01-31T20:00:00Z,2030-01-31T19:00:00Z,,`,
      `,,,,,,,,,`,
    );
    expect(said(wrong)).to.deep.equal([
      '2: stock must be a whole number from 1 to 10000000.',
      '3: priceCents must be a whole number from 0 to 4294967295.',
      '3: warmBefore must be a duration from 1s to 7d, such as 10m.',
      '4: closesAt must be later than opensAt.',
      '5: sku is missing: it must be 1 to 64 of the characters A-Z a-z 0-9 . _ -.',
      '5: title is missing: it must be a text of 1 to 200 characters.',
      '5: priceCents is missing: it must be a whole number from 0 to 4294967295.',
      '5: stock is missing: it must be a whole number from 1 to 10000000.',
      '5: limitPerBuyer is missing: it must be a whole number from 1 to 1000.',
      '5: opensAt is missing: it must be a time such as 2030-01-31T20:00:00Z.',
      '5: closesAt is missing: it must be a time such as 2030-01-31T20:00:00Z.',
    ]);
  });

  it('refuses unknown columns, lines of a different length and files without a sale', () => {
    const file = (text: string, format: 'csv' | 'json' = 'csv') => said(readImport(text, format, NOW_MS));
    expect(file('sku,price\npen,1')[0]).to.match(
      /^1: column "price" is unknown or appears twice; the columns are sku, title/,
    );
    expect(file('sku,sku\npen,1')[0]).to.include('"sku"');
    expect(file('sku|title\npen|1')[0]).to.include('"sku|title"');
    expect(file('sku,title\npen')).to.deep.equal(['2: this line has 1 cells, but the first line has 2.']);
    expect(file('')).to.deep.equal(['1: the file has no sale.']);
    expect(file(HEAD)).to.deep.equal(['1: the file has no sale.']);
    expect(file('[]', 'json')).to.deep.equal(['1: the file has no sale.']);
    expect(file('{}', 'json')).to.deep.equal(['1: the file must be a list of sales.']);
    expect(file('[{},\n oops]', 'json')).to.deep.equal([
      '2: The file is not JSON: unexpected "o" at line 2, column 2.',
    ]);
    expect(file(`[${'1,'.repeat(5000)}1]`, 'json').at(-1)).to.equal('1: the file has more than 5000 sales.');
  });

  it('reads JSON and names the line of each wrong sale', () => {
    const sale = { sku: 'pen', title: 'A "pen", {blue}', priceCents: 250, stock: 1, limitPerBuyer: 1 };
    const window = { opensAt: '2030-01-31T20:00:00Z', closesAt: '2030-01-31T22:00:00Z' };
    const text = JSON.stringify(
      [{ ...sale, ...window }, 7, { ...sale, ...window, tags: ['a', { b: 1 }] }, { ...sale, ...window, stock: 0 }],
      null,
      2,
    );
    const read = readImport(text, 'json', NOW_MS);
    expect(read.sales.map(({ line }) => line)).to.deep.equal([2]);
    const lines = text.split('\n');
    for (const { line } of read.errors) expect(lines[line - 1]).to.match(/^ {2}[{7]/);
    expect(read.errors.map(({ field }) => field)).to.deep.equal(['body', 'tags', 'stock']);
    expect(new Set(read.errors.map(({ line }) => line)).size).to.equal(3);
    const deep = readImport(`[\n7,\n${'['.repeat(200_000)}${']'.repeat(200_000)}]`, 'json', NOW_MS);
    expect(deep.errors.map(({ line }) => line)).to.deep.equal([2, 3]);
  });
});
