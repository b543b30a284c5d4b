//! Configuration of a user whose agents talk to a model server on this machine.

use proq_test_kit::Sandbox;
use serde_json::json;

/// Git aliases, since some agents may run nothing but git: `hold` blocks, and `fix` changes a line of
/// `shared.txt`, or keeps both sides where that line is in conflict.
const ALIASES: &str = r#"[alias]
    hold = "!sleep 600 & echo up > \"$ROOT/up\"; read line < \"$ROOT/go\"; kill $!; true"
    fix = "!sh \"$ROOT/fix\""
"#;

const FIX_SCRIPT: &str = "if grep -q '^<<<<<<<' shared.txt; then
    sed -i -e '/^<<<<<<<\\|^=======\\|^>>>>>>>/d' -e '/^lane 3/d' -e 's/^main 3/main and lane 3/' shared.txt
    git add shared.txt
else sed -i 's/^3$/lane 3/' shared.txt; git commit -qam 'Say lane'; fi";

/// Writes the configuration of a user: the address of the model, and its prices.
pub(super) fn configure(sandbox: &Sandbox, url: &str) {
    let home = sandbox.root().join("home");
    let provider = format!(
        r#"model_providers.own={{name="own",base_url="{url}/v1",env_key="OWN_KEY",wire_api="responses",request_max_retries=1,stream_max_retries=1}}"#
    );
    let config = format!(
        r#"
agent.crash_retries = 0

[prices]
stub-model = {{ input = 3.0, cached = 0.3, output = 15.0 }}

[agents.claude]
model = "claude-sonnet-4-5"
env.ANTHROPIC_BASE_URL = "{url}"
env.ANTHROPIC_API_KEY = "made-up"
env.CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = "1"
env.DISABLE_AUTOUPDATER = "1"

[agents.codex]
model = "stub-model"
env.OWN_KEY = "made-up"
options.extra = ["-c", '{provider}', "-c", "model_provider=own"]

[agents.gemini]
model = "gemini-2.5-pro"
env.GOOGLE_GEMINI_BASE_URL = "{url}"
env.GEMINI_API_KEY = "made-up"

[agents.opencode]
model = "own/stub-model"
env.OPENCODE_DISABLE_AUTOUPDATE = "1"
env.OPENCODE_DISABLE_MODELS_FETCH = "1"
env.OPENCODE_DISABLE_LSP_DOWNLOAD = "1"
"#
    );
    sandbox.write_in(&home, ".config/git-proq/config.toml", &config);
    let opencode = json!({
        "model": "own/stub-model", "small_model": "own/stub-model", "autoupdate": false, "share": "disabled",
        "provider": { "own": {
            "npm": "@ai-sdk/openai-compatible", "options": { "baseURL": format!("{url}/v1"), "apiKey": "made-up" },
            "models": { "stub-model": {
                "limit": { "context": 100_000, "output": 8000 },
                "cost": { "input": 3, "output": 15, "cache_read": 0.3 },
            } },
        } },
    });
    sandbox.write_in(&home, ".config/opencode/opencode.json", &opencode.to_string());
    let gemini = json!({ "security": { "auth": { "selectedType": "gemini-api-key" } } });
    sandbox.write_in(&home, ".gemini/settings.json", &gemini.to_string());
    sandbox.write_in(&home, ".gitconfig", ALIASES);
    sandbox.write_in(&sandbox.root(), "fix", FIX_SCRIPT);
}
