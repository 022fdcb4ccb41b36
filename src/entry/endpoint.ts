/** What the entry tells apart: POST purchases; GET purchase and its events; GET sale; orders with pay and cancel. */
export const ENDPOINTS = ['purchase', 'status', 'sale', 'order'] as const;
export type Endpoint = (typeof ENDPOINTS)[number];
