/** Values of the page for tests: an installation in the middle of an outage, and one with as many hosts as wanted. */
export * from './example.ts'
