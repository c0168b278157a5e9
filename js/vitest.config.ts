import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    environment: "happy-dom",
    include: ["test/**/*.test.ts"],
    testTimeout: 30_000, // a test that hangs, not one on a busy machine
  },
});
