/** The product version, defined only here; a test compares it with package.json and CHANGELOG.md. */
export const VERSION = '0.1.0'
