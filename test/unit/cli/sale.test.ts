import { expect } from 'chai';
import { saleCommand, wrongStateSentence } from '../../../src/cli/sale.js';

describe('sale', () => {
  it('a refused move names the command that comes first', () => {
    expect(wrongStateSentence('open', { saleId: '7', state: 'draft' })).to.include('`seckill sale warm 7`');
    expect(wrongStateSentence('pause', { saleId: '7', state: 'warm' })).to.include('`seckill sale open 7`');
    expect(wrongStateSentence('open', { saleId: '7', state: 'closed' })).to.include('final');
    expect(wrongStateSentence('warm', { saleId: '7', state: 'paused' })).to.include('is paused');
  });

  it('help shows no time as a number', () => {
    for (const command of saleCommand().commands) expect(command.helpInformation()).not.to.match(/\d{13}/);
  });

  it('reshard is a command, scatter is none', () => {
    const names = saleCommand().commands.map((command) => command.name());
    expect(names).to.include('reshard').and.not.include('scatter');
  });
});
