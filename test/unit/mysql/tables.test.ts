import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { TABLE_NAMES } from '../../../src/mysql/tables.js';

describe('the MySQL tables', () => {
  it('match the schema', () => {
    const schema = readFileSync(new URL('../../contract/schema.sql', import.meta.url), 'utf8');
    const names = [...schema.matchAll(/^CREATE TABLE (\w+)/gm)].map(([, name]) => name);
    expect(names).to.have.members([...TABLE_NAMES]);
  });
});
