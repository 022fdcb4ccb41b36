import { useState } from 'preact/hooks';
import type { Sale } from '../api/types.js';
import { inSmallestUnit } from '../../../src/core/currency.js';
import { localTimeField } from '../logic/format.js';
import { pathOf } from '../logic/routes.js';
import { Link } from '../parts/basics.js';
import { Confirm } from '../parts/confirm.js';
import { TextField } from '../parts/fields.js';
import { Note } from '../parts/states.js';
import { useApp, useWords } from '../shell/hooks.js';

const HOUR_MS = 3_600_000;

/** Creates a draft. The API reports what is wrong with it, field by field. */
export function NewSaleDialog({ onClose }: { readonly onClose: () => void }) {
  const { api } = useApp();
  const { t } = useWords();
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>(() => {
    const nextHourMs = Math.ceil(Date.now() / HOUR_MS) * HOUR_MS;
    return {
      title: '',
      sku: '',
      price: '',
      currency: '',
      stock: '',
      limitPerBuyer: '1',
      buckets: '1',
      opensAt: localTimeField(nextHourMs),
      closesAt: localTimeField(nextHourMs + HOUR_MS),
      warmBefore: '10m',
      paymentWindow: '',
    };
  });
  const [saleId, setSaleId] = useState('');
  const value = (name: string): string => (typed[name] ?? '').trim();
  const field = (
    name: keyof typeof t.sales.fields,
    type: 'text' | 'number' | 'datetime-local' = 'text',
    hint?: string,
  ) => (
    <TextField
      label={t.sales.fields[name]}
      type={type}
      value={typed[name] ?? ''}
      hint={hint}
      onInput={(text) => setTyped({ ...typed, [name]: text })}
    />
  );
  const create = async () => {
    const iso = (name: string): string =>
      Number.isNaN(Date.parse(value(name))) ? value(name) : new Date(value(name)).toISOString();
    // needed here, because the currency determines the meaning of the price
    const currency = value('currency').toUpperCase();
    const sale = await api.ask<Sale>('/admin/v1/sales', {
      method: 'POST',
      body: {
        title: value('title'),
        sku: value('sku'),
        priceCents: inSmallestUnit(Number(value('price') || Number.NaN), currency),
        currency,
        stock: Number(value('stock') || Number.NaN),
        limitPerBuyer: Number(value('limitPerBuyer')),
        buckets: Number(value('buckets')),
        opensAt: iso('opensAt'),
        closesAt: iso('closesAt'),
        ...(value('warmBefore') !== '' && { warmBefore: value('warmBefore') }),
        ...(value('paymentWindow') !== '' && { paymentWindow: value('paymentWindow') }),
      },
    });
    setSaleId(sale.saleId);
    return (
      <Note tone="ok">
        {t.sales.created(sale.saleId)}{' '}
        <Link to={pathOf({ screen: 'sale', saleId: sale.saleId })}>{t.sale.title(sale.saleId)}</Link>
      </Note>
    );
  };
  return (
    <Confirm
      title={t.sales.create}
      text={t.sales.createHint}
      verb={t.sales.create}
      run={create}
      audit={{ subject: `sale:${saleId}` }}
      onClose={onClose}
    >
      <div class="form-grid">
        {field('title')}
        {field('sku')}
        {field('price', 'number')}
        {field('currency')}
        {field('stock', 'number')}
        {field('limitPerBuyer', 'number')}
        {field('opensAt', 'datetime-local')}
        {field('closesAt', 'datetime-local')}
        {field('warmBefore', 'text', t.sales.warmBeforeHint)}
        {field('paymentWindow', 'text', t.sales.paymentWindowHint)}
        {field('buckets', 'number')}
      </div>
    </Confirm>
  );
}
