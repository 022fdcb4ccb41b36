/** Line drawings of 16 by 16, in the colour of the text around them. */
const PATHS = {
  live: 'M1.5 8.5h3l2-5 3 9 2-5.5 1 1.5h2',
  sales: 'M2.5 4h11v9.5h-11zM2.5 7h11M5.5 2.2v3M10.5 2.2v3',
  purchases: 'M7 11.8a4.8 4.8 0 1 0 0-9.6 4.8 4.8 0 0 0 0 9.6zM10.6 10.6 14 14',
  messages: 'M2 3.5h12v8H7.5L4.5 14v-2.5H2zM5 6.5h6M5 8.8h4',
  deadLetters: 'M2 4h12v8.5H2zM2 4.5l6 4.5 6-4.5',
  refunds: 'M3 6h7.5a3 3 0 0 1 0 6.5H6M5.5 3.5 3 6l2.5 2.5',
  reconcile: 'M8 2v12M4.5 5h7M4.5 5l-2.3 4.6h4.6zM11.5 5 9.2 9.6h4.6zM5.5 14h5',
  rules: 'M2.5 4.5h6M11.5 4.5h2M2.5 11.5h2M7.5 11.5h6M8.5 3v3h3V3zM4.5 10v3h3v-3z',
  audit: 'M3.5 2h6l3 3v9h-9zM9.5 2v3h3M6 8h4M6 10.8h4',
  health: 'M8 13.5S2 10 2 6a3.1 3.1 0 0 1 6-1 3.1 3.1 0 0 1 6 1c0 4-6 7.5-6 7.5z',
  search: 'M7 11.8a4.8 4.8 0 1 0 0-9.6 4.8 4.8 0 0 0 0 9.6zM10.6 10.6 14 14',
  close: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  menu: 'M2 4h12M2 8h12M2 12h12',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  check: 'M3 8.5l3.2 3.2L13 4.8',
  warn: 'M8 2.2 14.5 13.5h-13zM8 6.5v3.3M8 11.3v.7',
  bad: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 5v3.6M8 10.6v.6',
  info: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.4V11M8 4.9v.6',
  user: 'M8 8.2a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6zM2.8 14c.5-3 2.5-4.4 5.2-4.4s4.7 1.4 5.2 4.4',
  reload: 'M13 8a5 5 0 1 1-1.5-3.6M13 2.2v3h-3',
  plus: 'M8 3v10M3 8h10',
  download: 'M8 2.5v7.5M4.8 7 8 10.2 11.2 7M2.5 13.2h11',
  clock: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.8V8l2.3 1.6',
  dot: 'M8 9.2a1.2 1.2 0 1 0 0-2.4 1.2 1.2 0 0 0 0 2.4z',
  keyboard: 'M1.5 4h13v8.5h-13zM4 6.7h.5M7 6.7h.5M10 6.7h.5M12 9.8h.1M4.5 9.8h6',
  eye: 'M1.5 8S4 3.8 8 3.8 14.5 8 14.5 8 12 12.2 8 12.2 1.5 8 1.5 8zM8 9.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6z',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
