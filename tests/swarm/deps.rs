//! Tests of `git proq deps`: tree, graph and JSON.

use proq_test_kit::Sandbox;

use super::plan::sandbox_with_shop_plan;

#[test]
fn prints_dependency_tree() {
    insta::assert_snapshot!(sandbox_with_shop_plan().proq(&["deps", "shop.toml"]).to_text(), @r"
    store/orders-table A state column for orders (done)
    ├─ store/payments-table A table of payments
    │  ├─ shop/checkout Pay an order by card (also after store/ledger, pay/fake)
    │  │  └─ changelog Write the changelog (also after shop/refund, docs)
    │  └─ shop/refund Refund an order (also after pay/client)
    │     └─ changelog Write the changelog (also after shop/checkout, docs)
    └─ store/ledger Money as whole cents everywhere
       └─ shop/checkout Pay an order by card (also after store/payments-table, pay/fake; 1 task below it, see above)
    pay/client A client for the payment service
    ├─ pay/fake A payment service for tests
    │  └─ shop/checkout Pay an order by card (also after store/payments-table, store/ledger; 1 task below it, see above)
    └─ shop/refund Refund an order (also after store/payments-table; 1 task below it, see above)
    shop/receipts Receipts by mail
    docs Describe payments in the manual
    └─ changelog Write the changelog (also after shop/checkout, shop/refund)
    --- code 0
    ");
}

#[test]
fn prints_dot_graph_and_json_edges() {
    let sandbox = Sandbox::new();
    let plan = "format = 1\n[[phase]]\norder = \"serial\"\n[[phase.task]]\nid = \"a\"\ntitle = 'say \"hi\" \\n'\ndone = true\n\
                [[phase.task]]\nid = \"b\"\ntitle = \"B\"\n[[phase.task]]\nid = \"c\"\ntitle = \"C\"\nneeds = [\"b\", \"a\"]\n";
    sandbox.write("plan.toml", plan);
    insta::assert_snapshot!(sandbox.proq(&["deps", "plan.toml", "--dot"]).to_text(), @r#"
    digraph plan {
      rankdir=LR;
      node [shape=box];
      "a" [label="a\nsay \"hi\" \\n", style=dashed];
      "b" [label="b\nB"];
      "c" [label="c\nC"];
      "a" -> "b" [style=dotted];
      "a" -> "c";
      "b" -> "c";
    }
    --- code 0
    "#);
    let answer = sandbox.proq(&["deps", "plan.toml", "--json"]).json();
    let edges = serde_json::json!([
        {"task": "b", "needs": "a", "why": "order"},
        {"task": "c", "needs": "a", "why": "needs"},
        {"task": "c", "needs": "b", "why": "needs"},
    ]);
    assert_eq!(answer["edges"], edges);
    assert_eq!(
        answer["tasks"][0],
        serde_json::json!({"name": "a", "title": "say \"hi\" \\n", "phase": 1, "done": true})
    );
}
